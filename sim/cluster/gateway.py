"""Where requests wait while no replica is ready for them."""

from __future__ import annotations

import math
from collections.abc import Callable

from sim.cluster.clock import ARRIVALS, Clock, Moment
from sim.request import Request, Status

__all__ = ["Gateway"]


class Gateway:
    """Holds requests in order, each for *timeout_s* [s] at most and no longer than its client waits.

    Parameters
    ----------
    give_up
        Called with a request that is held no longer, its status and reason set.
    """

    def __init__(self, env: Clock, timeout_s: float, give_up: Callable[[Request], None]) -> None:
        self._env, self._timeout_s, self._give_up = env, timeout_s, give_up
        self._held: dict[Request, Moment] = {}

    def held(self, service: int) -> int:
        """Return how many wait for *service*."""
        return sum(request.service == service for request in self._held)

    def hold(self, request: Request) -> None:
        """Let *request* wait."""
        timeout_s, patience_s = self._env.now + self._timeout_s, request.arrival_s + request.patience_s
        if patience_s < timeout_s:
            status, reason = Status.FAILED, f"its client gave up after {request.patience_s:g} s"
        else:
            began = not math.isnan(request.admitted_s)
            status = Status.FAILED if began else Status.REJECTED
            reason = f"no replica was ready for {self._timeout_s:g} s"

        def expire(_: object) -> None:
            del self._held[request]
            request.status, request.reason = status, reason
            self._give_up(request)

        self._held[request] = Moment(self._env, min(timeout_s, patience_s), expire, ARRIVALS)

    def release(self, service: int) -> list[Request]:
        """Return those who wait for *service*, and hold them no longer."""
        released = [request for request in self._held if request.service == service]
        for request in released:
            self._held.pop(request).cancel()
        return released
