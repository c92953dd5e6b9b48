"""What a router sees and what it decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sim.policy import Policy
from sim.request import Request

__all__ = ["Load", "Router"]


class Load(Protocol):
    """A replica as a router sees it."""

    @property
    def outstanding(self) -> int:
        """Requests routed to it that are not answered yet."""


class Router(Policy):
    """Chooses the replica that serves a request; pure, so one router serves many runs."""

    def choose(self, request: Request, replicas: Sequence[Load], routed: int) -> int:
        """Return the index of the replica for *request*, before which *routed* others were routed."""
        raise NotImplementedError
