"""What happens to a fleet: the script of an experiment, and what breaks by itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from simpy import Event

from sim.cluster.clock import CHANGES, Clock, Moment
from sim.cluster.instance import Instance
from sim.cluster.keeper import Keeper
from sim.cluster.replica import Replica
from sim.failures import Drain, Failures, Loss, RollingUpdate, RouterLoss, Slow, Topology, strikes
from sim.failures import Event as Scripted
from sim.failures.failures import Rate
from sim.workload.streams import stream

__all__ = ["Disruptions"]


class Disruptions:
    """Lets *failures* happen to the instances of *keepers*.

    Parameters
    ----------
    topology
        Where all instances are, in the order of the keepers.
    lose_router
        Called with how long it is away [s].
    """

    def __init__(
        self,
        env: Clock,
        failures: Failures,
        keepers: Sequence[Keeper],
        topology: Topology,
        seed: int,
        lose_router: Callable[[float], None],
    ) -> None:
        self._env, self._topology, self._keepers, self._lose_router = env, topology, keepers, lose_router
        self._instances = [(keeper, instance) for keeper in keepers for instance in keeper.instances]
        self._factors: defaultdict[Replica, list[float]] = defaultdict(list)
        self._over = False
        for event in failures.events:
            Moment(env, event.at_s, lambda _, event=event: self._happen(event), CHANGES)  # type: ignore[misc]
        for what, rate in failures.rates():
            times = strikes(topology.units(what), rate.mtbf_s, stream(seed, f"failures of a {what}"))
            self._await(what, rate, times, _repairs(rate, stream(seed, f"repairs of a {what}")))

    def end(self) -> None:
        """Let nothing happen any more."""
        self._over = True

    def _await(self, what: str, rate: Rate, times: Iterator[tuple[float, int]], repairs_s: Iterator[float]) -> None:
        """Be there when the next thing of a kind breaks."""
        at_s, which = next(times)

        def strike(_: Event) -> None:
            if not self._over:
                self._lose(what, which, next(repairs_s))
                self._await(what, rate, times, repairs_s)

        Moment(self._env, at_s, strike, CHANGES)

    def _happen(self, event: Scripted) -> None:
        if self._over:
            return
        match event:
            case Loss():
                self._lose(event.what, event.which, event.for_s)
            case Slow():
                self._slow_down(self._instances[event.which][1], event)
            case Drain():
                keeper, instance = self._instances[event.which]
                keeper.drain(instance)
            case RollingUpdate():
                for keeper in self._keepers:
                    keeper.update(event.max_unavailable, event.max_surge)
            case RouterLoss():
                self._lose_router(event.for_s)

    def _lose(self, what: str, which: int, repair_s: float) -> None:
        for number in self._topology.hit_by(what, which):
            keeper, instance = self._instances[number]
            keeper.lose(instance, repair_s)

    def _slow_down(self, instance: Instance, event: Slow) -> None:
        """Slow down what runs there now; what is started there later is well again. The worst of several counts."""
        servers = instance.servers
        factors = self._factors[servers[0]]
        factors.append(event.factor)
        for server in servers:
            server.slow_down(max(factors))

        def recover(_: Event) -> None:
            factors.remove(event.factor)
            for server in servers:
                server.slow_down(max(factors, default=1.0))

        Moment(self._env, event.at_s + event.for_s, recover, CHANGES)


def _repairs(rate: Rate, draws: np.random.Generator) -> Iterator[float]:
    while True:
        yield rate.repair_s * (float(draws.standard_exponential()) if rate.repair == "exponential" else 1.0)
