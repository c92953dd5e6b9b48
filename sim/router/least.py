"""The replica with the least of something, found without looking at the others."""

from __future__ import annotations

import heapq
from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

from sim.request import Request
from sim.router.base import Choice, Load, Router
from sim.router.fleet import Fleet, Watcher
from sim.router.gauge import Gauge, Staleness

__all__ = ["Least", "LeastOf"]


_SPARE = 64


class Least(Watcher):
    """The replica with the smallest figure on *gauge*; of several the one with the lowest number.

    A heap holds a lower bound of each replica's figure. A figure that becomes smaller is told and pushed; one that
    grows is noticed when its bound is the smallest of all. So a choice costs the logarithm of the number of replicas.

    Parameters
    ----------
    among
        Which replicas count, by number; missing: all.
    falls
        Whose figures may become smaller untold, by number, so that all are looked at; missing: nobody's.
    """

    def __init__(
        self,
        gauge: Gauge,
        among: Callable[[int], bool] | None = None,
        falls: Callable[[int], bool] = lambda index: False,
    ) -> None:
        self._gauge, self._among, self._falls = gauge, among, falls
        self._falling: set[int] = set()
        self._bounds: dict[int, float] = {}  # of each replica its only entry of the heap that counts
        self._heap: list[tuple[float, int]] = []
        gauge.watch(self)

    def __bool__(self) -> bool:
        return bool(self._bounds)

    def find(self) -> int:
        """Return its number; there is one at least."""
        heap, bounds = self._heap, self._bounds
        if self._falling:
            return min(bounds, key=lambda index: (self._gauge[index], index))
        while True:
            bound, index = heap[0]
            if bounds.get(index) != bound:
                heapq.heappop(heap)
                continue
            value = self._gauge[index]
            if value <= bound:
                return index
            bounds[index] = value
            heapq.heapreplace(heap, (value, index))

    def joined(self, index: int) -> None:
        """Count a new replica, if it is one of those among whom to choose."""
        if self._among is None or self._among(index):
            self._bound(index, self._gauge[index])
            if self._falls(index):
                self._falling.add(index)

    def left(self, index: int) -> None:
        """Count a replica no more."""
        self._bounds.pop(index, None)
        self._falling.discard(index)

    def changed(self, index: int) -> None:
        """Lower the bound of a replica where its figure is below it."""
        bound = self._bounds.get(index)
        if bound is not None and (value := self._gauge[index]) < bound:
            self._bound(index, value)

    def _bound(self, index: int, value: float) -> None:
        self._bounds[index] = value
        heapq.heappush(self._heap, (value, index))
        if len(self._heap) > _SPARE + 4 * len(self._bounds):  # most of it is what counts no more
            self._heap = [(bound, place) for place, bound in self._bounds.items()]
            heapq.heapify(self._heap)


class LeastOf(Router):
    """Base of the routers that choose the replica with the smallest figure; of several the first."""

    engines: ClassVar[bool] = True
    """Whether the figure is known to engines only, which tell it, and not to a router that counts what it sends."""
    per_request: ClassVar[float] = 0.0
    """What a request adds to the figure from when it is sent until the next report."""

    staleness_s: Staleness = 0.0

    @abstractmethod
    def measure(self, replica: Load) -> float:
        """Return the figure."""

    def falls(self, replica: Load) -> bool:
        """Tell whether the figure of *replica* may become smaller without being told."""
        return False

    def begin(self, fleet: Fleet) -> Choice:
        """Keep the replicas in order of their figures."""
        gauge = Gauge(fleet, self.measure, self.staleness_s, engines=self.engines)
        least = Least(gauge, falls=lambda index: not self.staleness_s and self.falls(fleet.loads[index]))

        def choose(request: Request) -> int:
            index = least.find()
            gauge.add(index, self.per_request)
            return index

        return choose
