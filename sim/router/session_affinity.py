"""Every turn of a session to the same replica."""

from __future__ import annotations

from bisect import bisect
from hashlib import blake2b
from typing import Literal

from pydantic import Field

from sim.request import Request
from sim.router.base import Choice, Router
from sim.router.fleet import Fleet, Watcher
from sim.router.gauge import Gauge, outstanding
from sim.router.least import Least

__all__ = ["SessionAffinity"]


class SessionAffinity(Router):
    """The replica that a consistent hash of the session names; requests without one go where fewest are outstanding.

    A replica that joins or leaves moves only the sessions that are its own then. As `SessionRouter` of vLLM's
    production stack (`src/vllm_router/routers/routing_logic.py`), whose ring has 160 points a replica.
    """

    kind: Literal["session_affinity"] = "session_affinity"
    virtual_nodes: int = Field(160, ge=1, le=10_000, description="Points of each replica on the ring of hashes.")

    def begin(self, fleet: Fleet) -> Choice:
        """Begin with an empty ring."""
        ring, least = _Ring(self.virtual_nodes), Least(Gauge(fleet, outstanding, engines=False))
        fleet.watch(ring)

        def choose(request: Request) -> int:
            return least.find() if request.session_id is None else ring.of(request.session_id)

        return choose


class _Ring(Watcher):
    """Points of replicas on a circle; a name belongs to the next point."""

    def __init__(self, points: int) -> None:
        self._points_each = points
        self._points: list[tuple[int, int]] = []
        self._known: dict[str, int] = {}
        self._sorted = True

    def of(self, name: str) -> int:
        """Return the replica of *name*."""
        found = self._known.get(name)
        if found is None:
            if not self._sorted:
                self._points.sort()
                self._sorted = True
            place = bisect(self._points, (_hash(name), -1)) % len(self._points)
            found = self._known[name] = self._points[place][1]
        return found

    def joined(self, index: int) -> None:
        """Add the points of a replica."""
        self._points += [(_hash(f"replica {index}, point {turn}"), index) for turn in range(self._points_each)]
        self._sorted = False
        self._known.clear()

    def left(self, index: int) -> None:
        """Remove the points of a replica."""
        self._points = [point for point in self._points if point[1] != index]
        self._known.clear()


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
