"""Each replica in turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sim.request import Request
from sim.router.base import Load, Router

__all__ = ["RoundRobin"]


class RoundRobin(Router):
    """Each replica in turn, whatever its load."""

    kind: Literal["round_robin"] = "round_robin"

    def choose(self, request: Request, replicas: Sequence[Load], routed: int) -> int:
        """Return the next replica."""
        return routed % len(replicas)
