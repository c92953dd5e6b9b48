"""Keeps as many replicas of a pool ready as are wanted: starts them, drains them, and replaces those that are lost."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from sim.cluster.clock import CHANGES, Clock, Moment
from sim.cluster.instance import Instance
from sim.cluster.replica import Replica
from sim.metrics.instances import InstanceLog, InstanceState
from sim.request import Request
from sim.router import Fleet

__all__ = ["Keeper"]

_STARTING, _READY, _DRAINING, _DOWN = InstanceState


class Keeper:
    """The instances of one pool.

    Parameters
    ----------
    instances
        All that there can be; the first *wanted* of them are ready from the beginning.
    cold_start_s, grace_s
        How long one takes to become ready, and how long it may drain [s].
    make
        Makes the servers of an instance, new, from the number of the first.
    on_ready
        Called when one has become ready.
    on_lost
        Called with the requests of one that is lost.

    Attributes
    ----------
    wanted
        How many should be ready.
    ranks
        Servers of an instance.
    closed
        Whether all requests are answered.
    """

    def __init__(
        self,
        env: Clock,
        instances: Sequence[Instance],
        wanted: int,
        fleet: Fleet,
        log: InstanceLog,
        *,
        cold_start_s: float,
        grace_s: float,
        make: Callable[[int], Sequence[Replica]],
        on_ready: Callable[[], None],
        on_lost: Callable[[list[Request]], None],
    ) -> None:
        self.instances, self.wanted, self.ranks = instances, wanted, len(instances[0].servers)
        self._env, self._fleet, self._log = env, fleet, log
        self._cold_start_s, self._grace_s = cold_start_s, grace_s
        self._make, self._on_ready, self._on_lost = make, on_ready, on_lost
        self._max_unavailable = self._max_surge = 0
        self._counts = dict.fromkeys(InstanceState, 0)
        self._served_s = 0.0  # of states that are over
        self.closed = False
        for instance in instances[:wanted]:
            self._enter(instance, _READY)
            self._join(instance)

    def count(self, state: InstanceState) -> int:
        """Return how many are in *state*."""
        return self._counts[state]

    def servers(self, state: InstanceState) -> list[Replica]:
        """Return what the router sees of those in *state*."""
        if not self._counts[state]:
            return []
        return [server for instance in self.instances if instance.state is state for server in instance.servers]

    def serving_s(self) -> float:
        """Return the time that all of them together could serve so far [s]."""
        now_s = self._env.now
        return self._served_s + sum(
            now_s - instance.since_s for instance in self.instances if instance.state in (_READY, _DRAINING)
        )

    def want(self, replicas: int) -> None:
        """Let there be so many *replicas*, as soon as possible."""
        self.wanted = replicas
        self._balance()

    def update(self, max_unavailable: int, max_surge: int) -> None:
        """Replace all that run now, keeping within *max_unavailable* too few and *max_surge* too many."""
        self._max_unavailable, self._max_surge = max_unavailable, max_surge
        for instance in self.instances:
            instance.outdated = instance.state in (_STARTING, _READY)
        self._balance()

    def drain(self, instance: Instance) -> None:
        """Let *instance*, if it is ready, answer what it has and stop."""
        if instance.state is _READY:
            self._drain(instance)
            self._balance()

    def lose(self, instance: Instance, repair_s: float) -> None:
        """Let *instance* break, and be of no use for *repair_s* [s]; what is off does not break."""
        until_s = self._env.now + repair_s
        if instance.state is None or (instance.state is _DOWN and instance.next_s >= until_s):
            return
        if instance.state is _READY:
            self._leave(instance)
        lost = instance.lose() if instance.state in (_READY, _DRAINING) else []
        self._enter(instance, _DOWN)
        self._later(instance, repair_s, self._off)
        self._balance()
        self._on_lost(lost)

    def served(self, server: int) -> None:
        """Take note that *server* has one request less: one that drains may be done."""
        if not self._counts[_DRAINING]:
            return
        instance = self.instances[(server - self.instances[0].first) // self.ranks]
        if instance.state is _DRAINING and instance.idle:
            self._off(instance)

    def close(self) -> None:
        """Let nothing come or go any more: all requests are answered."""
        self.closed = True

    def end_books(self, at_s: float) -> None:
        """Log how the instances were until the end of the run."""
        for instance in self.instances:
            if instance.state is not None:
                self._log.add(instance.first, instance.since_s, at_s, instance.state)

    @property
    def _live(self) -> int:
        return self._counts[_STARTING] + self._counts[_READY]

    def _balance(self) -> None:
        """Start what is too few and stop what is too many, the oldest versions first."""
        outdated = sum(instance.outdated for instance in self.instances)
        limit = self.wanted + (self._max_surge if outdated else 0)
        for instance in self.instances:
            if self._live >= limit or self._live - outdated >= self.wanted:
                break
            if instance.state is None:
                self._start(instance)
        self._stop_outdated()
        for state in (_STARTING, _READY):
            for instance in reversed(self.instances):
                if self._live <= limit:
                    return
                if instance.state is state:
                    self._stop(instance)

    def _stop_outdated(self) -> None:
        for instance in self.instances:
            if instance.outdated and (
                instance.state is _STARTING or self.count(_READY) > self.wanted - self._max_unavailable
            ):
                self._stop(instance)
                self._balance()
                return

    def _start(self, instance: Instance) -> None:
        instance.servers = self._make(instance.first)
        self._enter(instance, _STARTING)
        self._later(instance, self._cold_start_s, self._open)

    def _open(self, instance: Instance) -> None:
        """Let *instance* be ready."""
        self._enter(instance, _READY)
        self._join(instance)
        self._balance()
        self._on_ready()

    def _stop(self, instance: Instance) -> None:
        if instance.state is _STARTING:
            self._off(instance)
        else:
            self._drain(instance)

    def _drain(self, instance: Instance) -> None:
        self._leave(instance)
        self._enter(instance, _DRAINING)
        if instance.idle:
            self._off(instance)
        elif self._grace_s < math.inf:
            self._later(instance, self._grace_s, self._give_up)

    def _join(self, instance: Instance) -> None:
        for server in instance.servers:
            self._fleet.join(server)

    def _leave(self, instance: Instance) -> None:
        for server in instance.servers:
            self._fleet.leave(server.index)

    def _give_up(self, instance: Instance) -> None:
        """Kill *instance*, which drains for too long."""
        lost = instance.lose()
        self._off(instance)
        self._on_lost(lost)

    def _off(self, instance: Instance) -> None:
        instance.lose()  # it has no request, but may be in an iteration for some that were given up
        self._enter(instance, None)
        self._balance()

    def _enter(self, instance: Instance, state: InstanceState | None) -> None:
        if instance.state is not None:
            self._log.add(instance.first, instance.since_s, self._env.now, instance.state)
            self._counts[instance.state] -= 1
            if instance.state in (_READY, _DRAINING):
                self._served_s += self._env.now - instance.since_s
        if state is not None:
            self._counts[state] += 1
        if instance.next is not None:
            instance.next.cancel()
            instance.next = None
        instance.state, instance.since_s = state, self._env.now
        instance.outdated &= state in (_STARTING, _READY)

    def _later(self, instance: Instance, after_s: float, action: Callable[[Instance], None]) -> None:
        instance.next_s = self._env.now + after_s
        instance.next = Moment(
            self._env, instance.next_s, lambda _: None if self.closed else action(instance), CHANGES, instance.first
        )
