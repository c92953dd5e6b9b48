"""The cost of a replica whose experts are placed anew every so many iterations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sim.batch import Batch
from sim.cost import Pace, Rebalances, StepCost

__all__ = ["Rebalanced"]


class Rebalanced:
    """A `sim.cost.StepCost` that counts iterations, shared by the attention ranks of one replica.

    The iteration after a rebalancing begins with the stall, and no stride goes past one.

    Attributes
    ----------
    left
        Iterations until the next rebalancing.
    """

    def __init__(self, rebalances: Rebalances) -> None:
        self._rebalances = rebalances
        self._number = 0
        self._stall_s = 0.0
        self.left = rebalances.first
        self.rebalances: Rebalances | None = None
        self.windows = rebalances.steps[0].windows
        self.tokens_each = rebalances.steps[0].tokens_each

    @property
    def step(self) -> StepCost:
        """What iterations cost under the placement of now."""
        return self._rebalances.steps[self._number]

    def passed(self, iterations: int) -> None:
        """Count *iterations*; if they were the last ones of a placement, the next one begins."""
        self._stall_s = 0.0
        self.left -= iterations
        if self.left <= 0:
            self.left = self._rebalances.interval
            self._number = (self._number + 1) % len(self._rebalances.steps)
            self._stall_s = self._rebalances.stalls_s[self._number]

    def splits(self, batch: Batch) -> bool:
        """Tell whether *batch* is large enough to run as two halves that overlap."""
        return self.step.splits(batch)

    def pace(self, batch: Batch, growing: tuple[int, ...] = ()) -> Pace:
        """Return the time of *batch* and of its repetitions until the next rebalancing."""
        pace = self.step.pace(batch, growing)
        if self._stall_s:
            return Pace(pace.first_s + self._stall_s, 0.0, 1)
        return pace._replace(iterations=min(pace.iterations, self.left))

    def durations_s(
        self, batch: Batch, context_tokens: NDArray[np.int64], windows: Sequence[NDArray[np.int64]]
    ) -> NDArray[np.float64]:
        """Return the times of iterations that differ from *batch* in their contexts [s]."""
        durations_s = self.step.durations_s(batch, context_tokens, windows)
        durations_s[0] += self._stall_s
        return durations_s

    def breakdown(self, batch: Batch) -> dict[str, float]:
        """Return the seconds of each operation, without a stall."""
        return self.step.breakdown(batch)

    def limits(self, batch: Batch) -> dict[str, float]:
        """Return the shares of the iteration's time that each limit explains."""
        return self.step.limits(batch)

    def imbalance_s(self, batch: Batch) -> float | None:
        """Return how much of the iteration is lost to uneven experts [s]."""
        return self.step.imbalance_s(batch)

    def admission_delay_s(self, input_tokens: int) -> float:
        """Return the time from the client to the engine's queue [s]."""
        return self.step.admission_delay_s(input_tokens)
