"""Turning requests away at the gateway."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from pydantic import Field

from sim.policy import Policy
from sim.request import Request
from sim.router import Fleet

__all__ = ["Admission", "Verdict"]

Verdict = Callable[[Request], str]
"""Returns why a request is turned away, or an empty text; called once a request, by rising arrival."""


class Admission(Policy):
    """Turns requests away (HTTP 429) before they reach a router; serves many runs, as routers do.

    Requests for several models are judged apart, each by the replicas of its model.
    """

    protect_priority: int | None = Field(
        None, description="Requests with this priority value or a lower, more urgent one are never turned away."
    )

    def begin(self, fleet: Fleet) -> Verdict:
        """Return the verdict for one run."""
        verdict = self.judge(fleet)
        urgent = self.protect_priority

        def protected(request: Request) -> str:
            reason = verdict(request)
            return "" if urgent is not None and request.priority <= urgent else reason

        return protected

    @abstractmethod
    def judge(self, fleet: Fleet) -> Verdict:
        """Return the verdict for one run on requests that nothing protects."""
