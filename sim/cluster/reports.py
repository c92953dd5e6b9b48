"""Reports: what replicas tell their router of themselves, now and then."""

from __future__ import annotations

from collections.abc import Callable

from simpy import Event

from sim.cluster.clock import REPORTS, Clock, Moment

__all__ = ["Reports"]


class Reports:
    """Calls *report* at every multiple of *interval_s* [s] while requests are there, and once more when all are gone.

    Parameters
    ----------
    busy
        Tells whether any request is there.
    """

    def __init__(
        self, env: Clock, interval_s: float, report: Callable[[], None], busy: Callable[[], bool]
    ) -> None:
        self._env, self._interval_s, self._report, self._busy = env, interval_s, report, busy
        self._pending, self._turn = False, 0

    def go_on(self) -> None:
        """See to it that the next report is made; a request has come."""
        if not self._pending:
            self._pending = True
            self._turn = max(int(self._env.now / self._interval_s), self._turn) + 1
            Moment(self._env, self._turn * self._interval_s, self._make, REPORTS)

    def _make(self, _moment: Event) -> None:
        self._pending = False
        self._report()
        if self._busy():
            self.go_on()
