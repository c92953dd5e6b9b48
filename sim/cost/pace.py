"""What the simulation asks of a cost model: how long an iteration takes, and how that grows while a batch decodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sim.batch import Batch
from sim.policy import Policy

__all__ = ["CostModel", "Pace", "Rebalances", "StepCost"]


class Pace(NamedTuple):
    """Time of the iterations of a stride, while the batch stays the same.

    Iteration *j*, from 0, takes ``first_s + j * growth_s`` [s] as long as ``j < iterations``; `math.inf` where no kink
    comes. A batch with prompt chunks never repeats, so its pace holds for one iteration.
    """

    first_s: float
    growth_s: float
    iterations: float

    def slowed(self, factor: float) -> Pace:
        """Return the pace of iterations that take *factor* times as long."""
        return Pace(self.first_s * factor, self.growth_s * factor, self.iterations)


class Rebalances(NamedTuple):
    """Placements of experts that follow each other, and again from the first.

    Attributes
    ----------
    interval
        Iterations from one to the next; the first comes after a quarter of them (vLLM's ``EplbState``).
    steps, stalls_s
        What iterations cost under each placement, and how long a replica stalls for it [s].
    """

    interval: int
    steps: tuple[StepCost, ...]
    stalls_s: tuple[float, ...]

    @property
    def first(self) -> int:
        """Iterations until the first."""
        return max(1, self.interval // 4)


class StepCost(Protocol):
    """A pure function of what an iteration computes: no clock, no queue, no randomness.

    Attributes
    ----------
    windows
        Attention windows of the model [tokens], for each of which a batch carries the sum of ``min(context, window)``.
    tokens_each
        Tokens that a decode computes in an iteration: a draft and one more, or one; the mean where some have no draft.
    rebalances
        The placements of experts whose mean this is; None where they stay where they are.
    """

    windows: tuple[int, ...]
    tokens_each: float
    rebalances: Rebalances | None

    def splits(self, batch: Batch) -> bool:
        """Tell whether *batch* is large enough to run as two halves that overlap."""

    def pace(self, batch: Batch, growing: tuple[int, ...] = ()) -> Pace:
        """Return the time of *batch* and of its repetitions.

        *growing* says for each window how many decodes are still below it, so that their window sum grows.
        """

    def durations_s(
        self, batch: Batch, context_tokens: NDArray[np.int64], windows: Sequence[NDArray[np.int64]]
    ) -> NDArray[np.float64]:
        """Return the times of iterations that differ from *batch*, which only decodes, in their contexts [s].

        *context_tokens* has the context of each of them, *windows* a row of capped ones for each window.
        """

    def breakdown(self, batch: Batch) -> dict[str, float]:
        """Return the seconds of each operation; they sum to the iteration's time."""

    def limits(self, batch: Batch) -> dict[str, float]:
        """Return the shares of the iteration's time that each limit explains; they sum to 1.

        Roofline: ``compute``, ``memory``, ``link``, ``latency`` (launches and dependent steps) and ``host``.
        """

    def imbalance_s(self, batch: Batch) -> float | None:
        """Return how much of the iteration is lost to uneven experts [s]; None where no load of experts is given."""

    def admission_delay_s(self, input_tokens: int) -> float:
        """Return the time from the client to the engine's queue, for HTTP and tokenisation [s]."""


class CostModel(Policy):
    """Base of the cost models that a YAML names by ``kind``; ``build`` makes the `StepCost` of one replica."""
