"""Lets an autoscaler look at its pool now and then, and does what it wants."""

from __future__ import annotations

from collections.abc import Callable

from simpy import Event

from sim.autoscaler import Autoscaler, Controller, Snapshot
from sim.cluster.clock import CHANGES, REPORTS, Clock, Moment
from sim.cluster.keeper import Keeper

__all__ = ["Scaling"]


class Scaling:
    """*policy* for the pool of *keeper*, of which *look* returns a snapshot."""

    def __init__(self, env: Clock, policy: Autoscaler, keeper: Keeper, look: Callable[[], Snapshot]) -> None:
        self._env, self._policy, self._keeper, self._look = env, policy, keeper, look
        self._controller = Controller(policy)
        self._turn = 0
        self._go_on()

    def _go_on(self) -> None:
        self._turn += 1
        Moment(self._env, self._turn * self._policy.interval_s, self._see, REPORTS)

    def _see(self, _moment: Event) -> None:
        """Take a snapshot, which is known after the lag."""
        if self._keeper.closed:
            return
        snapshot = self._look()
        Moment(self._env, self._env.now + self._policy.lag_s, lambda _: self._decide(snapshot), CHANGES)
        self._go_on()

    def _decide(self, snapshot: Snapshot) -> None:
        if not self._keeper.closed:
            wanted = self._controller.decide(self._env.now, self._keeper.wanted, snapshot)
            if wanted != self._keeper.wanted:
                self._keeper.want(wanted)
