"""The clock, and moments: simulation events that cost one heap entry and call one function."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from typing import Self

from simpy import Environment, Event
from simpy.core import EmptySchedule

__all__ = ["ARRIVALS", "BEGINNINGS", "CHANGES", "ENDS", "REPORTS", "Clock", "Moment"]

_REPLICAS = 2**32  # more than a cluster can have
REPORTS, CHANGES, ARRIVALS, ENDS, BEGINNINGS = (place * _REPLICAS for place in range(5))
"""Order within one instant: reports tell what was before; replicas come and go before anything arrives, and one that is
lost does not end its iteration; whatever arrives is there before an iteration ends, and before one begins all have
ended: a client whom one of them answers may send its next request at this very instant."""


class Clock(Environment):
    """A simpy environment whose events happen at the very time that they are scheduled for, not at now plus a delay.

    All of them are moments, so none fails, and none is waited for by a process.

    Attributes
    ----------
    now
        The time [s].
    """

    now: float = 0.0  # the base has a property; nothing is asked for more often
    _queue: list[tuple[float, int, int, Moment]]  # type: ignore[assignment]

    def peek(self) -> float:
        """Return when the next moment comes [s]; infinite if none does."""
        return self._queue[0][0] if self._queue else inf

    def step(self) -> None:
        """Let the next moment come; raise `simpy.core.EmptySchedule` if there is none."""
        if not self._queue:
            raise EmptySchedule
        self.now, _, number, moment = heappop(self._queue)
        self._now = self.now  # where the base looks
        if moment.number == number:  # else it was set anew or cancelled
            moment.action(moment)


class Moment(Event):
    """Calls *action* with itself at *at_s* [s], or now if that has passed; `set` anew, only then.

    Of one instant the lowest *rank* is first, of one rank the lowest *replica*, then what was set first.
    """

    _ok, _value = True, None  # triggered, as `simpy.Timeout` makes itself

    number = -1  # of what is set; the clock's queue may still hold what was before

    def __init__(
        self, env: Clock, at_s: float, action: Callable[[Event], None], rank: int, replica: int = 0
    ) -> None:
        self._env, self._replica = env, replica
        self.set(at_s, action, rank)

    @classmethod
    def unset(cls, env: Clock, replica: int = 0) -> Self:
        """Return one for which nothing is set yet."""
        moment = cls.__new__(cls)
        moment._env, moment._replica = env, replica
        return moment

    def set(self, at_s: float, action: Callable[[Event], None], rank: int) -> None:
        """Let *action* happen at *at_s* [s] instead of whatever was to happen."""
        env = self._env
        if at_s < env.now:
            at_s = env.now
        self.action = action
        self.number = number = next(env._eid)
        heappush(env._queue, (at_s, rank + self._replica, number, self))

    def cancel(self) -> None:
        """Let nothing happen when the moment comes."""
        self.number = -1
