"""One operation of an iteration: what it asks of the accelerator, and how long that takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from sim.batch import Batch, Chunk

__all__ = ["Demand", "Operation", "Work", "joint"]


def joint(first_s: float, second_s: float, sharpness: float) -> float:
    """Return the p-norm of two times [s]: they overlap, the better the larger *sharpness* is.

    A smooth roofline after Williams, Waterman and Patterson (2009), whose sharp corner is the limit p to infinity.
    """
    long_s, short_s = (first_s, second_s) if first_s > second_s else (second_s, first_s)
    return long_s * (1.0 + (short_s / long_s) ** sharpness) ** (1.0 / sharpness) if short_s else long_s


class Demand(NamedTuple):
    """Seconds that each resource alone would need, and the fixed time on top [s].

    Compute and memory overlap with the given sharpness; link and launch time are never hidden.
    """

    compute_s: float = 0.0
    memory_s: float = 0.0
    link_s: float = 0.0
    launch_s: float = 0.0
    sharpness: float = 1.0

    @property
    def seconds(self) -> float:
        """Time of the operation [s]."""
        return joint(self.compute_s, self.memory_s, self.sharpness) + self.link_s + self.launch_s

    @property
    def limits(self) -> dict[str, float]:
        """The same time by what bounds it: the longer of compute and memory, link, launch [s]."""
        bound = "compute" if self.compute_s > self.memory_s else "memory"
        overlapped_s = joint(self.compute_s, self.memory_s, self.sharpness)
        return {bound: overlapped_s, "link": self.link_s, "launch": self.launch_s}


@dataclass(slots=True)
class Work:
    """What one rank computes in an iteration; under pipeline parallelism, of the fullest microbatch.

    Counts of tokens and sequences are whole, sums of contexts may be shares of a sum.
    """

    tokens: int
    sampled: int
    sequences: int
    decodes: int
    decode_context_tokens: float
    decode_window_tokens: tuple[float, ...]
    chunks: tuple[Chunk, ...]

    @classmethod
    def of(cls, batch: Batch) -> Work:
        """Return all of *batch*; padding rows compute nothing."""
        chunks, decodes = batch.chunks, batch.decodes
        tokens = decodes
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
        """Return what one run of it asks for; nothing if *work* has none for it."""
