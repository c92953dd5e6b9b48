"""When requests are given up: by an engine's time-outs, or by a client that waits no longer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from sim.cluster.clock import ARRIVALS, Clock, Moment
from sim.request import Request

__all__ = ["Deadlines", "Timeouts"]


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long after its arrival an engine gives a request up [s]: if it is not answered, or not yet admitted."""

    request_s: float = math.inf
    queue_s: float = math.inf


class Deadlines:
    """Calls *give_up* with a request and the reason, at its deadline; nothing happens to one that was forgotten."""

    def __init__(self, env: Clock, timeouts: Timeouts, give_up: Callable[[Request, str], None]) -> None:
        self._env, self._timeouts, self._give_up = env, timeouts, give_up
        self._endless = timeouts == Timeouts()
        self._pending: dict[Request, list[Moment]] = {}

    def watch(self, request: Request) -> None:
        """Set the deadlines of *request*, which has just arrived."""
        if self._endless and request.patience_s == math.inf:
            return
        self._pending[request] = [
            Moment(self._env, request.arrival_s + after_s, lambda _, act=action: act(), ARRIVALS)  # type: ignore[misc]
            for after_s, action in self._limits(request)
            if after_s < math.inf
        ]

    def forget(self, request: Request) -> None:
        """Drop the deadlines of *request*, which was answered, refused or given up."""
        for moment in self._pending.pop(request, ()):
            moment.cancel()

    def _limits(self, request: Request) -> Iterator[tuple[float, Callable[[], None]]]:
        yield request.patience_s, partial(self._give_up, request, f"its client gave up after {request.patience_s:g} s")
        limit_s = self._timeouts.request_s
        yield limit_s, partial(self._give_up, request, f"not answered within {limit_s:g} s")
        yield self._timeouts.queue_s, partial(self._unless_admitted, request)

    def _unless_admitted(self, request: Request) -> None:
        if math.isnan(request.admitted_s):
            self._give_up(request, f"not admitted within {self._timeouts.queue_s:g} s")
