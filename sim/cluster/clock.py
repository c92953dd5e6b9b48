"""Moments: simulation events that cost one heap entry and call one function."""

from __future__ import annotations

from collections.abc import Callable

from simpy import Environment, Event

__all__ = ["ARRIVALS", "BEGINNINGS", "ENDS", "Moment"]

ARRIVALS, ENDS, BEGINNINGS = 1, 2, 3
"""Order within one instant: whatever arrives is there before an iteration ends, and before one begins all have ended:
a client whom one of them answers may send its next request at this very instant."""


class Moment(Event):
    """Calls *action* at *at_s* [s]; of the same instant the lowest *rank* is first, then the lowest *replica*."""

    def __init__(self, env: Environment, at_s: float, action: Callable[[], None], rank: int, replica: int = 0) -> None:
        super().__init__(env)
        self._ok, self._value = True, None
        self.callbacks = [lambda _: action()]
        env.schedule(self, (rank, replica), max(at_s - env.now, 0.0))  # type: ignore[arg-type]

    def cancel(self) -> None:
        """Let nothing happen when the moment comes."""
        self.callbacks = []
