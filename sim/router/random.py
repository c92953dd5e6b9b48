"""Any replica."""

from __future__ import annotations

from typing import Literal

from sim.request import Request
from sim.router.base import Choice, Router
from sim.router.fleet import Fleet

__all__ = ["Random"]


class Random(Router):
    """Any replica, each with the same probability, whatever its load."""

    kind: Literal["random"] = "random"

    def begin(self, fleet: Fleet) -> Choice:
        """Draw a replica for each request."""

        def choose(request: Request) -> int:
            return fleet.draw()

        return choose
