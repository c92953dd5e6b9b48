"""One operation of an iteration: what it asks of the accelerator, and how long that takes.

The formulas use arithmetic only, so that a fit can put arrays of shapes where the simulation puts one shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from sim.batch import Batch, Chunk

__all__ = ["Demand", "Operation", "OperationTime", "Seconds", "Work", "joint"]


def joint(first_s: float, second_s: float, third_s: float, sharpness: float) -> float:
    """Return the p-norm of three times [s]: they overlap, the better the larger *sharpness* is.

    A roofline (Williams, Waterman and Patterson 2009) with a smooth corner; its sharp one is the limit p to
    infinity, and p = 1 adds the times.
    """
    total: float = (first_s**sharpness + second_s**sharpness + third_s**sharpness) ** (1.0 / sharpness)
    return total


class Demand(NamedTuple):
    """Seconds that each resource alone would need, and the times that nothing hides [s].

    Attributes
    ----------
    compute_s, memory_s
        All its FLOPs and all its bytes at the rates that the kernel reaches.
    depth_s
        The chain of dependent steps of one tile, which no number of processors shortens.
    sharpness
        How well these three overlap.
    link_s
        Bytes over the link.
    fixed_s
        Launch, and passes before or after the main loop.
    """

    compute_s: float = 0.0
    memory_s: float = 0.0
    depth_s: float = 0.0
    sharpness: float = 1.0
    link_s: float = 0.0
    fixed_s: float = 0.0

    @property
    def overlapped_s(self) -> float:
        """Time of compute, memory and depth together [s]."""
        return joint(self.compute_s, self.memory_s, self.depth_s, self.sharpness)

    @property
    def seconds(self) -> float:
        """Time of the operation [s]."""
        return self.overlapped_s + self.link_s + self.fixed_s

    @property
    def limits(self) -> dict[str, float]:
        """The same time by what bounds it: the longest of the overlapping ones, the link, latency [s]."""
        longest = max(
            (self.compute_s, "compute"), (self.memory_s, "memory"), (self.depth_s, "latency")
        )
        seconds = {"compute": 0.0, "memory": 0.0, "link": self.link_s, "latency": self.fixed_s}
        seconds[longest[1]] += self.overlapped_s
        return seconds


@dataclass(slots=True)
class Work:
    """What one rank computes in an iteration; under pipeline parallelism, of the fullest microbatch.

    Counts of sequences are whole, as are tokens but for the mean of several ranks and of decodes with and without a
    draft; sums of contexts may be shares.
    """

    tokens: float
    sampled: float
    sequences: float
    decodes: int
    decode_context_tokens: float
    decode_window_tokens: tuple[float, ...]
    chunks: tuple[Chunk, ...]

    @classmethod
    def of(cls, batch: Batch) -> Work:
        """Return all of *batch*; padding rows compute nothing."""
        chunks, decodes = batch.chunks, batch.decodes
        tokens = decodes * batch.tokens_each
        for chunk in chunks:
            tokens += chunk.tokens
        return cls(
            tokens,
            batch.sampled,
            len(chunks) + decodes,
            decodes,
            batch.decode_context_tokens,
            batch.decode_window_tokens,
            chunks,
        )


class Operation(Protocol):
    """What an iteration does *repeats* times, once a layer as a rule."""

    @property
    def name(self) -> str:
        """Key of the breakdown; several operations may share it."""

    @property
    def repeats(self) -> int:
        """How often it runs in one iteration."""

    def demand(self, work: Work) -> Demand:
        """Return what one run of it asks for, when *work* has something for it."""


class Seconds(dict[float, float]):
    """Time of *operations* by a count of rows [s], computed once for each count that occurs."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        super().__init__()
        self._operations = operations

    def __missing__(self, rows: float) -> float:
        work = Work(rows, rows, rows, 0, 0, (), ())
        seconds = sum(each.repeats * each.demand(work).seconds for each in self._operations) if rows else 0.0
        self[rows] = seconds
        return seconds


class OperationTime(NamedTuple):
    """What all runs of one operation take in an iteration [s].

    Attributes
    ----------
    seconds
        Its share of the iteration.
    compute_s, memory_s
        What its arithmetic and its memory traffic would take alone; they overlap.
    link_s, fixed_s
        Communication, and what nothing hides, such as launches.
    """

    seconds: float = 0.0
    compute_s: float = 0.0
    memory_s: float = 0.0
    link_s: float = 0.0
    fixed_s: float = 0.0

    def plus(self, times: float, demand: Demand) -> OperationTime:
        """Return this and *times* runs of *demand*."""
        more = (demand.seconds, demand.compute_s, demand.memory_s, demand.link_s, demand.fixed_s)
        return OperationTime(*(mine + times * its for mine, its in zip(self, more, strict=True)))
