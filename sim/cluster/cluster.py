"""A cluster: clients, a router and replicas on one clock."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from simpy import Event

from sim.admission import Admission
from sim.autoscaler import Snapshot
from sim.cluster.clock import ARRIVALS, CHANGES, Clock, Moment
from sim.cluster.disaggregated import Disaggregated
from sim.cluster.disruptions import Disruptions
from sim.cluster.engine import Pool
from sim.cluster.gateway import Gateway
from sim.cluster.instance import Instance
from sim.cluster.keeper import Keeper
from sim.cluster.link import Link
from sim.cluster.lockstep import Lockstep, Rank
from sim.cluster.meter import Meter
from sim.cluster.rebalanced import Rebalanced
from sim.cluster.recovery import begin_again
from sim.cluster.replica import Replica
from sim.cluster.reports import Reports
from sim.cluster.scaling import Scaling
from sim.cluster.ties import Ties
from sim.failures import Failures, Topology
from sim.metrics.instances import InstanceLog, InstanceRows
from sim.metrics.rows import StrideRows
from sim.metrics.stride_log import StrideLog
from sim.metrics.transfers import TransferLog, TransferRows
from sim.request import Request, Status
from sim.router import Fleet, Router
from sim.router.disaggregation import Disaggregation
from sim.workload.client import Client
from sim.workload.streams import stream
from sim.workload.traffic import Traffic

__all__ = ["Cluster"]

_PUT_AWAY = 20_000
"""Every so many requests what they left in the log is put away."""

R = TypeVar("R", bound=Replica)


class Cluster:
    """Pools of replicas behind *router*, serving *traffic*.

    Parameters
    ----------
    pools
        Their replicas are numbered on from pool to pool.
    admission
        Turns requests away before the router sees them; None: nobody.
    seed
        Of the random draws of router and failures.
    failures
        What happens to the replicas; None: nothing.
    gateway_timeout_s
        Longest wait of a request while no replica is ready [s].
    disaggregation
        How prefill and decode replicas work together, with nothing left open; pools without a role need none.
    on_progress
        Called with the number of requests answered so far, after each of them.
    """

    def __init__(
        self,
        pools: Sequence[Pool],
        router: Router,
        traffic: Traffic,
        on_progress: Callable[[int], None] | None = None,
        seed: int = 0,
        admission: Admission | None = None,
        failures: Failures | None = None,
        gateway_timeout_s: float = math.inf,
        disaggregation: Disaggregation | None = None,
    ) -> None:
        self._env, self._log, self._client = Clock(), StrideLog(), Client(traffic)
        self._transfers = TransferLog()
        self._router, self._on_progress = router, on_progress
        self._sent = self._answered = 0
        self._total = len(traffic.requests)
        self._router_returns_s = self._answered_s = 0.0
        self._failures, self._lives = failures or Failures(), InstanceLog()
        self._gateway = Gateway(self._env, gateway_timeout_s, self._done)
        self._arrival = Moment.unset(self._env)
        self._arrival_s = math.inf
        self._waits_for_batches = any(pool.engine.scheduler.keeps_batch for pool in pools)
        self._replicas: list[Replica] = []
        self._fleets = {(pool.service, pool.role): Fleet(stream(seed, _draws_of(pool))) for pool in pools}
        self._choices = {of: router.begin(fleet) for of, fleet in self._fleets.items()}
        doors = {service: fleet for (service, role), fleet in self._fleets.items() if role != "decode"}
        self._verdicts = {} if admission is None else {of: admission.begin(fleet) for of, fleet in doors.items()}
        self._stages = {} if disaggregation is None else self._disaggregated(pools, disaggregation)
        self._reports = [
            Reports(self._env, interval_s, report, busy=lambda: self._answered < self._sent)
            for fleet in self._fleets.values()
            for interval_s, report in fleet.reports
        ]
        self._keepers = [self._keeper(pool) for pool in pools]
        self._keeper_of = [
            keeper for keeper in self._keepers for instance in keeper.instances for _ in instance.servers
        ]
        self._fleet_of = [
            self._fleets[pool.service, pool.role]
            for pool, keeper in zip(pools, self._keepers, strict=True)
            for instance in keeper.instances
            for _ in instance.servers
        ]
        topology = Topology.of(
            [pool.gpus for pool, keeper in zip(pools, self._keepers, strict=True) for _ in keeper.instances],
            self._failures.gpus_per_node,
        )
        self._disruptions = Disruptions(
            self._env, self._failures, self._keepers, topology, seed, lose_router=self._lose_router
        )

    def run(self) -> StrideRows:
        """Serve all requests to the end and return the strides; what became of a request is written on it."""
        self._await_arrival()
        self._env.run()
        strides = self._log.rows()
        ends_s = strides.start_s + strides.duration_s  # the last may end after the last request was given up
        for keeper in self._keepers:
            keeper.end_books(float(ends_s.max(initial=self._answered_s)))
        return strides

    def lives(self) -> InstanceRows:
        """Return when replicas were starting, ready, draining or down, once the run is over."""
        return self._lives.rows()

    def transfers(self) -> TransferRows:
        """Return what was moved from prefill to decode replicas."""
        return self._transfers.rows()

    def _disaggregated(self, pools: Sequence[Pool], options: Disaggregation) -> dict[int, Disaggregated]:
        """Return the services whose prompts and answers are on different replicas."""
        ranks = [pool for pool in pools for _ in range(pool.replicas * pool.engine.attention_ranks)]
        link = Link({index: pool.port for index, pool in enumerate(ranks) if pool.port is not None}, options.latency_s)
        return {
            service: Disaggregated(
                self._env,
                options,
                link,
                self._transfers,
                self._replicas,
                prefill_replicas=sum(pool.role == role and pool.service == service for pool in ranks),
                choose=lambda request, role: self._choices[request.service, role](request),
                submit=self._submit,
                on_done=self._done,
            )
            for (service, role), fleet in self._fleets.items()
            if role == "prefill"
        }

    def _keeper(self, pool: Pool) -> Keeper:
        """Set a pool up with all the replicas that there can be."""
        instances = []
        meter = None if pool.autoscaler is None else Meter()
        for _ in range(max(pool.most, pool.replicas)):
            first = len(self._replicas)
            servers = self._servers(pool, first, meter)
            self._replicas += servers
            instances.append(Instance(first, servers))

        def make(first: int) -> Sequence[Replica]:
            servers = self._servers(pool, first, meter)
            self._replicas[first : first + len(servers)] = servers
            return servers

        keeper = Keeper(
            self._env,
            instances,
            pool.replicas,
            self._fleets[pool.service, pool.role],
            self._lives,
            cold_start_s=pool.cold_start_s,
            grace_s=pool.grace_s,
            make=make,
            on_ready=lambda: self._admit(pool.service),
            on_lost=self._recover,
        )
        if pool.autoscaler is not None and meter is not None:
            look = partial(self._look, pool, keeper, meter)
            Scaling(self._env, pool.autoscaler, keeper, look)
        return keeper

    def _look(self, pool: Pool, keeper: Keeper, meter: Meter) -> Snapshot:
        return meter.snapshot(self._env.now, keeper, self._gateway.held(pool.service), pool.gpus)

    def _servers(self, pool: Pool, first: int, meter: Meter | None) -> Sequence[Replica]:
        """Return what the router sees of a new replica: itself, or its attention ranks, numbered from *first* on."""
        number = pool.engine.attention_ranks
        rebalances = pool.engine.cost.rebalances
        placed = None if rebalances is None else Rebalanced(rebalances)
        if number == 1:
            return [self._replica(pool, first, Replica, meter, placed)]
        ranks = [self._replica(pool, first + index, Rank, meter, placed) for index in range(number)]
        Lockstep(self._env, ranks, placed)
        return ranks

    def _replica(
        self, pool: Pool, index: int, kind: type[R], meter: Meter | None, placed: Rebalanced | None
    ) -> R:
        engine, fleet, stages = pool.engine, self._fleets[pool.service, pool.role], self._stages.get(pool.service)
        ties = Ties(
            more_to_come=lambda: self._client.next_s < math.inf,
            on_done=self._ended,
            on_change=fleet.changed if fleet.watches_engines else None,
            on_load=None if stages is None else stages.reserved,
            lends=pool.role == "prefill",
            meter=meter,
        )
        return kind(self._env, index, engine, placed or engine.cost, self._log, ties)

    def _await_arrival(self) -> None:
        """Be there when the client sends next; an answer may have brought that forward."""
        next_s = self._client.next_s
        if next_s == self._arrival_s:
            return
        self._arrival_s = next_s
        if next_s < math.inf:
            self._arrival.set(next_s, self._arrive, ARRIVALS)
        else:
            self._arrival.cancel()

    def _arrive(self, _moment: Event) -> None:
        """Route everything that the client sends at this instant."""
        self._arrival_s = math.inf
        while self._client.next_s <= self._env.now:
            self._receive(self._client.send())
        self._await_arrival()
        if self._waits_for_batches and self._arrival_s == math.inf:
            for replica in self._replicas:
                replica.wake()

    def _receive(self, request: Request) -> None:
        """Turn *request* away, or let the router take its time with it."""
        self._sent += 1
        if self._verdicts and (reason := self._verdicts[request.service](request)):
            request.status, request.reason = Status.REJECTED, reason
            self._done(request)
            return
        for reports in self._reports:
            reports.go_on()
        request.queued_s = request.arrival_s + self._router.latency_s
        if self._router.latency_s:
            Moment(self._env, request.queued_s, lambda _: self._route(request), ARRIVALS)
        else:
            self._route(request)

    def _route(self, request: Request) -> None:
        stages = self._stages.get(request.service)
        if stages is not None:
            stages.serve(request)
        elif self._env.now < self._router_returns_s or not self._fleets[request.service, "both"].ready:
            self._gateway.hold(request)
        else:
            self._submit(request, self._choices[request.service, "both"](request))

    def _submit(self, request: Request, index: int) -> None:
        self._replicas[index].submit(request)
        self._fleet_of[index].changed(index)

    def _admit(self, service: int) -> None:
        """Route those who wait for *service* at the gateway."""
        if self._env.now >= self._router_returns_s:
            for request in self._gateway.release(service):
                self._route_now(request)

    def _recover(self, requests: list[Request]) -> None:
        """Send *requests*, which have lost their replica, to another one, or let them fail."""
        for request in requests:
            if begin_again(request, self._failures.in_flight, self._failures.max_retries):
                self._route_now(request)
            else:
                self._done(request)

    def _route_now(self, request: Request) -> None:
        request.queued_s = self._env.now
        self._route(request)

    def _lose_router(self, for_s: float) -> None:
        """Route nothing for so long."""
        self._router_returns_s = max(self._router_returns_s, self._env.now + for_s)

        def return_(_: Event) -> None:
            for service, _role in self._fleets:
                self._admit(service)

        Moment(self._env, self._router_returns_s, return_, CHANGES)

    def _ended(self, request: Request) -> None:
        """Take note that its replica has answered, refused or given up *request*."""
        self._fleet_of[request.replica].ended(request)
        stages = self._stages.get(request.service)
        if stages is None:
            self._done(request)
        else:
            stages.ended(request)

    def _done(self, request: Request) -> None:
        self._answered += 1
        if request.replica >= 0:
            self._keeper_of[request.replica].served(request.replica)
        self._client.ended(request, self._env.now)
        self._await_arrival()
        if self._on_progress is not None:
            self._on_progress(self._answered)
        if self._answered % _PUT_AWAY == 0:
            self._log.put_away()
        if self._answered == self._total:
            self._answered_s = self._env.now
            self._disruptions.end()
            for keeper in self._keepers:
                keeper.close()


def _draws_of(pool: Pool) -> str:
    """Return the name of the random draws of the router before *pool*."""
    return f"router {pool.service}" if pool.role == "both" else f"router {pool.service} {pool.role}"
