"""Tokens on their way to the ranks of their experts, and back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from sim.cost.operation import Demand, Work
from sim.moe.expert_load import ExpertLoad
from sim.profiles.calibrated_all_to_all import AllToAllCalibration

__all__ = ["Exchange", "Library", "Line", "Reach"]

LOW_LATENCY_TOKENS = 256
"""Tokens of a rank up to which engines keep buffers of low latency (vLLM ``VLLM_DEEPEP_LOW_LATENCY_*``: 256)."""
COMBINED_BYTES = 2.0
"""Outputs of experts come back in 16 bits."""

Mode = Literal["low_latency", "high_throughput"]


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


class Line(NamedTuple):
    """Time of batches below so many tokens a rank: fixed, and for each token of a rank [s]."""

    below_tokens: float
    launch_s: float
    token_s: float


@dataclass(frozen=True, slots=True)
class Exchange:
    """Dispatch to the experts and combine of their outputs, by a library made for it.

    ``launch + bytes / rate`` in each direction, for the bytes of the rank that receives most.

    Attributes
    ----------
    senders, replicas
        Ranks that share the tokens of an attention rank (its tensor parallelism), and attention ranks.
    load
        How uneven ranks are; None: even.
    """

    name: str
    repeats: int
    senders: int
    replicas: int
    lines: tuple[Line, ...]
    load: ExpertLoad | None

    def demand(self, work: Work) -> Demand:
        """Return what it asks of the link."""
        tokens = work.tokens / self.senders
        crowding = 1.0 if self.load is None else self.load.at(work.tokens * self.replicas).max_over_mean
        line = next(line for line in self.lines if tokens < line.below_tokens)
        return Demand(link_s=tokens * crowding * line.token_s, fixed_s=line.launch_s)


@dataclass(frozen=True, slots=True)
class Library:
    """A library that exchanges tokens, in one of its modes."""

    calibration: AllToAllCalibration
    mode: Mode | Literal["auto"]

    def lines(self, reach: Reach, elements: int, element_bytes: float, link_bytes_per_s: float) -> tuple[Line, ...]:
        """Return the times of vectors of *elements*, of which each takes *element_bytes* on the way there."""
        modes: dict[Mode, float] = {"low_latency": LOW_LATENCY_TOKENS + 1.0, "high_throughput": math.inf}
        if self.mode != "auto":
            modes = {self.mode: math.inf}
        return tuple(
            self._line(mode, below, reach, elements, element_bytes, link_bytes_per_s) for mode, below in modes.items()
        )

    def _line(
        self,
        mode: Mode,
        below_tokens: float,
        reach: Reach,
        elements: int,
        element_bytes: float,
        link_bytes_per_s: float,
    ) -> Line:
        table = self.calibration.low_latency if mode == "low_latency" else self.calibration.high_throughput
        constants = table[min((nodes for nodes in table if nodes >= reach.all_nodes), default=max(table))]
        there, back = constants.dispatch, constants.combine
        vector_bytes = elements * (element_bytes / there.link.value + COMBINED_BYTES / back.link.value)
        token_s = reach.copies(mode) * vector_bytes / link_bytes_per_s
        return Line(below_tokens, there.launch_s.value + back.launch_s.value, token_s)
