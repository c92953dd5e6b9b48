"""The clock, and moments: simulation events that cost one heap entry and call one function."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from math import inf

from simpy import Environment, Event
from simpy.core import EmptySchedule

__all__ = ["ARRIVALS", "BEGINNINGS", "CHANGES", "ENDS", "REPORTS", "Clock", "Moment"]

REPORTS, CHANGES, ARRIVALS, ENDS, BEGINNINGS = 0, 1, 2, 3, 4
"""Order within one instant: reports tell what was before; replicas come and go before anything arrives, and one that is
lost does not end its iteration; whatever arrives is there before an iteration ends, and before one begins all have
ended: a client whom one of them answers may send its next request at this very instant."""

_REPLICAS = 2**32  # more than a cluster can have


class Clock(Environment):
    """A simpy environment whose events happen at the very time that they are scheduled for, not at now plus a delay.

    All of them are moments, so none fails, and none is waited for by a process.

    Attributes
    ----------
    now
        The time [s].
    """

    now: float = 0.0  # the base has a property; nothing is asked for more often

    def at(self, at_s: float, rank: int, moment: Moment) -> None:
        """Let *moment* happen at *at_s* [s], or now if that has passed; of one instant the lowest *rank* is first."""
        now_s = self.now
        heappush(self._queue, (at_s if at_s > now_s else now_s, rank, next(self._eid), moment))  # type: ignore[misc]

    def peek(self) -> float:
        """Return when the next moment comes [s]; infinite if none does."""
        return self._queue[0][0] if self._queue else inf

    def step(self) -> None:
        """Let the next moment come; raise `simpy.core.EmptySchedule` if there is none."""
        if not self._queue:
            raise EmptySchedule
        self.now, _, _, moment = heappop(self._queue)
        self._now = self.now  # where the base looks
        for action in moment.callbacks:
            action(moment)


class Moment(Event):
    """Calls *action* with itself at *at_s* [s]; of one instant the lowest *rank* is first, then *replica*."""

    _ok, _value = True, None  # triggered, as `simpy.Timeout` makes itself

    def __init__(
        self, env: Clock, at_s: float, action: Callable[[Event], None], rank: int, replica: int = 0
    ) -> None:
        self.callbacks = [action]
        env.at(at_s, rank * _REPLICAS + replica, self)

    def cancel(self) -> None:
        """Let nothing happen when the moment comes."""
        self.callbacks = []
