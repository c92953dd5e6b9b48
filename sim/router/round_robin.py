"""Each replica in turn."""

from __future__ import annotations

from itertools import count
from typing import Literal

from sim.request import Request
from sim.router.base import Choice, Router
from sim.router.fleet import Fleet

__all__ = ["RoundRobin"]


class RoundRobin(Router):
    """Each replica in turn, whatever its load."""

    kind: Literal["round_robin"] = "round_robin"

    def begin(self, fleet: Fleet) -> Choice:
        """Count what is routed."""
        turns = count()

        def choose(request: Request) -> int:
            return fleet.ready[next(turns) % len(fleet.ready)]

        return choose
