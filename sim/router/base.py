"""What a router sees of a replica, and what it decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from pydantic import Field

from sim.policy import Policy
from sim.request import Request
from sim.units import Seconds

if TYPE_CHECKING:
    from sim.router.fleet import Fleet

__all__ = ["Choice", "Load", "Router"]

Choice = Callable[[Request], int]
"""Returns the number of the replica that serves a request; what it remembers lasts for one run."""


class Load(Protocol):
    """A replica as a router sees it, right at any moment, also in the middle of an iteration."""

    @property
    def index(self) -> int:
        """Its number."""

    @property
    def outstanding(self) -> int:
        """Requests routed to it that are not answered yet."""

    @property
    def outstanding_tokens(self) -> int:
        """Prompt tokens of those requests [tokens]; how long answers will be nobody knows."""

    @property
    def pending_tokens(self) -> int:
        """Prompt tokens of those without a first token, less what their router took to be cached [tokens]."""

    @property
    def waiting(self) -> int:
        """Requests in the engine's queue."""

    @property
    def running(self) -> int:
        """Requests admitted by the engine."""

    @property
    def kv_usage(self) -> float:
        """Share of its KV blocks that running requests hold."""

    @property
    def kv_falls(self) -> bool:
        """Whether that share may fall untold, while an iteration follows another."""

    @property
    def kv_tokens(self) -> int:
        """Tokens that its KV cache has room for [tokens]."""


class Router(Policy):
    """Chooses the replica that serves a request.

    One router serves many runs, so it remembers nothing itself: `begin` makes what a run needs.
    """

    latency_s: Seconds = Field(0.0, ge=0, description="What the router itself takes for each request [s].")

    def begin(self, fleet: Fleet) -> Choice:
        """Return the choice for one run over *fleet*, whose replicas come and go; one at least is ready when asked."""
        raise NotImplementedError
