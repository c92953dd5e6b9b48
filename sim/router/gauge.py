"""One figure of every replica, as a router knows it: as it is, or as it was last reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator, Field

from sim.router.base import Load
from sim.router.fleet import Fleet, Watcher
from sim.units import Seconds

__all__ = ["Gauge", "Measure", "Staleness", "outstanding"]

Measure = Callable[[Load], float]

_SHORTEST_S = 1e-3


def _interval(staleness_s: float) -> float:
    if 0 < staleness_s < _SHORTEST_S:
        raise ValueError(f"reports every {staleness_s:g} s: at least {_SHORTEST_S:g} s, or 0 for no staleness")
    return staleness_s


Staleness = Annotated[
    Seconds,
    Field(
        ge=0,
        description="Interval at which the state of replicas is reported; what happens in between is not seen [s].",
    ),
    AfterValidator(_interval),
]


def outstanding(replica: Load) -> float:
    """Return the outstanding requests of *replica*, which every router can count itself."""
    return replica.outstanding


class Gauge(Watcher):
    """*measure* of the replicas of *fleet*.

    Parameters
    ----------
    interval_s
        Replicas report every so often, and what happens in between is not seen [s]; 0: nothing is old.
    engines
        Whether *measure* reads what only engines know.
    """

    def __init__(self, fleet: Fleet, measure: Measure, interval_s: float = 0.0, *, engines: bool = True) -> None:
        self._fleet, self._measure = fleet, measure
        self._reported: dict[int, float] | None = {} if interval_s else None
        self._engines, self._watchers = engines, list[Watcher]()
        if interval_s:
            fleet.watch(self)
            fleet.reports.append((interval_s, self._report))

    def __getitem__(self, index: int) -> float:
        if self._reported is None:
            return self._measure(self._fleet.loads[index])
        return self._reported[index]

    def add(self, index: int, amount: float) -> None:
        """Count *amount* more until the next report, for what was sent to a replica since the last one."""
        if self._reported is not None:
            self._reported[index] += amount

    def watch(self, watcher: Watcher) -> None:
        """Tell *watcher* of replicas that come and go, and of figures that may have become smaller."""
        if self._reported is None:
            self._fleet.watch(watcher, engines=self._engines)
        else:
            self._watchers.append(watcher)

    def joined(self, index: int) -> None:
        """Know a new replica by its first report."""
        assert self._reported is not None
        self._reported[index] = self._measure(self._fleet.loads[index])
        for watcher in self._watchers:
            watcher.joined(index)

    def left(self, index: int) -> None:
        """Forget a replica."""
        assert self._reported is not None
        del self._reported[index]
        for watcher in self._watchers:
            watcher.left(index)

    def _report(self) -> None:
        assert self._reported is not None
        for index, load in self._fleet.loads.items():
            value = self._measure(load)
            if value != self._reported[index]:
                self._reported[index] = value
                for watcher in self._watchers:
                    watcher.changed(index)
