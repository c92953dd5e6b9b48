"""Moments: simulation events that cost one heap entry and call one function."""

from __future__ import annotations

from collections.abc import Callable

from simpy import Environment, Event

__all__ = ["ARRIVALS", "BOUNDARIES", "Moment"]

ARRIVALS, BOUNDARIES = 1, 2
"""Order within one instant: whatever arrives is there before an iteration ends or begins."""


class Moment(Event):
    """Calls *action* at *at_s* [s]; at the same instant *rank* decides who is first, then the order of creation."""

    def __init__(self, env: Environment, at_s: float, action: Callable[[], None], rank: int) -> None:
        super().__init__(env)
        self._ok, self._value = True, None
        self.callbacks = [lambda _: action()]
        env.schedule(self, rank, max(at_s - env.now, 0.0))  # type: ignore[arg-type]

    def cancel(self) -> None:
        """Let nothing happen when the moment comes."""
        self.callbacks = []
