"""Tokens on their way to the ranks of their experts, and back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from sim.cost.operation import Demand, Work
from sim.errors import ConfigError
from sim.moe.expert_load import ExpertLoad
from sim.profiles.calibrated_all_to_all import AllToAllCalibration, Direction, Mode

__all__ = ["DIRECTIONS", "Exchange", "Library", "Line", "Path", "Reach"]

LOW_LATENCY_TOKENS = 256
"""Tokens of a rank up to which engines keep buffers of low latency (vLLM ``VLLM_DEEPEP_LOW_LATENCY_*``: 256)."""
COMBINED_BYTES = 2.0
"""Outputs of experts come back in 16 bits."""

TAKEN_PROCESSORS = 20
"""Processors that the mode of high throughput keeps beside other work (vLLM ``VLLM_DBO_COMM_SMS``: 20)."""

DIRECTIONS: tuple[Direction, ...] = ("dispatch", "combine")


@dataclass(frozen=True, slots=True)
class Reach:
    """Where the choices of one token lead, on average.

    Attributes
    ----------
    choices, ranks, nodes
        Experts that a token chooses, and the ranks and nodes on which these are.
    all_ranks, all_nodes
        Ranks and nodes over which the experts are spread.
    """

    choices: float
    ranks: float
    nodes: float
    all_ranks: int
    all_nodes: int

    @classmethod
    def even(cls, choices: int, ranks: int, nodes: int) -> Reach:
        """Return the reach of independent choices that are even over all ranks."""
        reached, reached_nodes = (each * (1.0 - (1.0 - 1.0 / each) ** choices) for each in (ranks, nodes))
        return cls(choices, reached, reached_nodes, ranks, nodes)

    def copies(self, mode: Mode) -> float:
        """Return how often a token leaves its rank or, where there are several nodes, its node.

        A mode of low latency sends one copy for each choice, one of high throughput one for each rank, which between
        nodes it sends once for each node.
        """
        several = self.all_nodes > 1
        away = 1.0 - 1.0 / (self.all_nodes if several else self.all_ranks)
        sent = self.choices if mode == "low_latency" else self.nodes if several else self.ranks
        return sent * away


class Path(NamedTuple):
    """What one token has to carry, and over which way.

    Attributes
    ----------
    elements, element_bytes
        Length of its vector, and what an element of it takes on the way there [B].
    accelerator, processors
        Its name, and into how many units it is divided.
    """

    reach: Reach
    elements: int
    element_bytes: float
    link_bytes_per_s: float
    accelerator: str
    processors: int


class Line(NamedTuple):
    """One direction, for batches below so many tokens a rank: fixed, and for each token of a rank [s].

    Attributes
    ----------
    taken
        Share of the accelerator's processors that its kernels keep while tokens are on their way; without one they
        take all of them for the fixed time, and none beyond.
    """

    below_tokens: float
    launch_s: float
    token_s: float
    taken: float = 0.0


@dataclass(frozen=True, slots=True)
class Exchange:
    """Dispatch to the experts, or combine of their outputs, by a library made for it.

    ``launch + bytes / rate``, for the bytes of the rank that receives most.

    Attributes
    ----------
    direction
        There or back.
    senders, replicas
        Ranks that share the tokens of an attention rank (its tensor parallelism), and attention ranks.
    load
        How uneven ranks are; None: even.
    """

    name: str
    direction: Direction
    repeats: int
    senders: int
    replicas: int
    lines: tuple[Line, ...]
    load: ExpertLoad | None

    def demand(self, work: Work) -> Demand:
        """Return what it asks of the link."""
        tokens = work.tokens / self.senders
        crowding = 1.0 if self.load is None else self.load.at(work.tokens * self.replicas).max_over_mean
        line = self._line(tokens)
        return Demand(link_s=tokens * crowding * line.token_s, fixed_s=line.launch_s)

    def occupied_s(self, work: Work) -> float:
        """Return how long it keeps the accelerator from other work [s], if there is other work beside it.

        Of 60 us of low latency that DeepEP's own benchmark needs processors for (lmsys.org, 2025-05-05, two halves of
        128 tokens on 9 nodes), the fixed time is 55 us.
        """
        line, demand = self._line(work.tokens / self.senders), self.demand(work)
        return line.taken * demand.seconds if line.taken else demand.fixed_s

    def _line(self, tokens: float) -> Line:
        return next(line for line in self.lines if tokens < line.below_tokens)


@dataclass(frozen=True, slots=True)
class Library:
    """A library that exchanges tokens, in one of its modes."""

    calibration: AllToAllCalibration
    mode: Mode | Literal["auto"]

    def lines(self, path: Path, direction: Direction) -> tuple[Line, ...]:
        """Return the times of one direction of *path*."""
        modes: dict[Mode, float] = {"high_throughput": math.inf}
        if self.mode == "low_latency":
            modes = {"low_latency": math.inf}
        elif self.mode == "auto" and self.calibration.tables("low_latency", path.accelerator):
            modes = {"low_latency": LOW_LATENCY_TOKENS + 1.0, **modes}
        return tuple(self._line(mode, below, path, direction) for mode, below in modes.items())

    def _line(self, mode: Mode, below_tokens: float, path: Path, direction: Direction) -> Line:
        table = self.calibration.tables(mode, path.accelerator)
        if not table:
            raise ConfigError(f"{self.calibration.name} has no mode {mode}", path="engine.all_to_all.mode")
        nodes = path.reach.all_nodes
        constants = table[min((known for known in table if known >= nodes), default=max(table))].of(direction)
        element_bytes = path.element_bytes if direction == "dispatch" else COMBINED_BYTES
        vector_bytes = path.elements * element_bytes / constants.link.value
        token_s = path.reach.copies(mode) * vector_bytes / path.link_bytes_per_s
        taken = 0.0 if mode == "low_latency" else TAKEN_PROCESSORS / path.processors
        return Line(below_tokens, constants.launch_s.value, token_s, taken)
