"""Moments: simulation events that cost one heap entry and call one function."""

from __future__ import annotations

from collections.abc import Callable

from simpy import Environment, Event

__all__ = ["ARRIVALS", "BEGINNINGS", "CHANGES", "ENDS", "REPORTS", "Moment"]

REPORTS, CHANGES, ARRIVALS, ENDS, BEGINNINGS = 0, 1, 2, 3, 4
"""Order within one instant: reports tell what was before; replicas come and go before anything arrives, and one that is
lost does not end its iteration; whatever arrives is there before an iteration ends, and before one begins all have
ended: a client whom one of them answers may send its next request at this very instant."""

_REPLICAS = 2**32  # more than a cluster can have


class Moment(Event):
    """Calls *action* with itself at *at_s* [s]; of one instant the lowest *rank* is first, then *replica*."""

    def __init__(
        self, env: Environment, at_s: float, action: Callable[[Event], None], rank: int, replica: int = 0
    ) -> None:
        # A triggered event, as `simpy.Timeout` makes itself; the general constructor would cost as much again.
        self.env, self.callbacks, self._ok, self._value = env, [action], True, None
        delay_s = at_s - env.now
        env.schedule(self, rank * _REPLICAS + replica, delay_s if delay_s > 0 else 0.0)  # type: ignore[arg-type]

    def cancel(self) -> None:
        """Let nothing happen when the moment comes."""
        self.callbacks = []
