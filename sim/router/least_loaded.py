"""The replica with the fewest requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sim.request import Request
from sim.router.base import Load, Router

__all__ = ["LeastLoaded"]


class LeastLoaded(Router):
    """The replica with the fewest outstanding requests; of several the first."""

    kind: Literal["least_loaded"] = "least_loaded"

    def choose(self, request: Request, replicas: Sequence[Load], routed: int) -> int:
        """Return the least loaded replica."""
        return min(range(len(replicas)), key=lambda index: replicas[index].outstanding)
