"""One figure of all replicas in an array, for routers that weigh several things against each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.router.fleet import Fleet, Watcher
from sim.router.gauge import Gauge

__all__ = ["Column", "any_best"]

Floats = NDArray[np.float64]


class Column(Watcher):
    """The figures of *gauge* by the number of the replica, infinite for those that are not ready.

    Attributes
    ----------
    values
        The figures; valid until a replica joins.
    fresh
        Whether none has changed since this was last set.
    """

    def __init__(self, gauge: Gauge) -> None:
        self._gauge, self.fresh = gauge, False
        self.values: Floats = np.full(8, np.inf)
        gauge.watch(self)

    def joined(self, index: int) -> None:
        """Make room for a new replica."""
        while index >= len(self.values):
            self.values = np.concatenate([self.values, np.full(len(self.values), np.inf)])
        self.changed(index)

    def left(self, index: int) -> None:
        """Let a replica be out of question."""
        self.values[index], self.fresh = np.inf, False

    def changed(self, index: int) -> None:
        """Read the figure of a replica anew."""
        self.values[index], self.fresh = self._gauge[index], False


def any_best(costs: Floats, fleet: Fleet) -> int:
    """Return the replica with the lowest of *costs*, of several any."""
    best = np.flatnonzero(costs == costs.min())
    return int(best[0] if len(best) == 1 else best[int(next(fleet.uniforms) * len(best))])
