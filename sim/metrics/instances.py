"""The lives of replicas as rows: when each was starting, ready, draining or down."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

__all__ = ["InstanceLog", "InstanceRows", "InstanceState"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class InstanceState(IntEnum):
    """Where a replica is in its life; one that is switched off has no row."""

    STARTING = 0  # provisioned, loading and warming up: paid, and of no use yet
    READY = 1
    DRAINING = 2  # gets no more requests and answers those it has
    DOWN = 3  # lost, until it is repaired; not paid


@dataclass(frozen=True, slots=True)
class InstanceRows:
    """One row a replica and state that it was in, in the order in which they ended.

    With attention data parallel *replica* is the number of the first rank.
    """

    replica: Ints
    from_s: Floats
    to_s: Floats
    state: Ints

    def where(self, chosen: NDArray[np.bool_]) -> InstanceRows:
        """Return the *chosen* rows."""
        return InstanceRows(self.replica[chosen], self.from_s[chosen], self.to_s[chosen], self.state[chosen])

    def since(self, at_s: float) -> InstanceRows:
        """Return what of them is after *at_s* [s]."""
        after = self.where(self.to_s > at_s)
        return replace(after, from_s=np.maximum(after.from_s, at_s))

    def time_s(self, *states: InstanceState) -> float:
        """Return the time that all replicas together were in one of *states* [s]."""
        return float((self.to_s - self.from_s)[np.isin(self.state, states)].sum())

    def number(self, *states: InstanceState) -> tuple[Floats, Ints]:
        """Return when replicas enter or leave *states* [s], rising, and how many are in them from then on."""
        own = np.isin(self.state, states)
        times_s, place = np.unique(np.concatenate([self.from_s[own], self.to_s[own]]), return_inverse=True)
        steps = np.repeat([1, -1], int(own.sum()))
        return times_s, np.cumsum(np.bincount(place, steps, minlength=len(times_s))).astype(np.int64)


@dataclass(slots=True)
class InstanceLog:
    """Collects instance rows."""

    _rows: list[tuple[int, float, float, InstanceState]] = field(default_factory=list)

    def add(self, replica: int, from_s: float, to_s: float, state: InstanceState) -> None:
        """Append one row, unless it lasts no time."""
        if to_s > from_s:
            self._rows.append((replica, from_s, to_s, state))

    def rows(self) -> InstanceRows:
        """Return everything logged so far."""
        table = np.array(self._rows, dtype=np.float64).reshape(-1, 4)
        return InstanceRows(table[:, 0].astype(np.int64), table[:, 1], table[:, 2], table[:, 3].astype(np.int64))
