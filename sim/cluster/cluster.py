"""A cluster: clients, a router and replicas on one clock."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from simpy import Environment, Event

from sim.cluster.clock import ARRIVALS, Moment
from sim.cluster.deadlines import Timeouts
from sim.cluster.lockstep import Lockstep, Rank
from sim.cluster.replica import Replica
from sim.cost import StepCost
from sim.kv import KvCache
from sim.metrics.rows import StrideLog, StrideRows
from sim.request import Request
from sim.router import Router
from sim.scheduler import Scheduler
from sim.workload.client import Client
from sim.workload.traffic import Traffic

__all__ = ["Cluster", "Engine", "Pool"]

R = TypeVar("R", bound=Replica)


@dataclass(frozen=True, slots=True)
class Engine:
    """What every replica of a cluster runs.

    Attributes
    ----------
    num_blocks, block_size
        KV blocks of a replica, and tokens of a block.
    max_model_len
        Longest sequence that is accepted, answer included [tokens].
    timeouts
        After how long it gives requests up.
    by_iteration
        Step every iteration by itself instead of in strides.
    attention_ranks
        Ranks of a replica with requests of their own, in lockstep; blocks and limits are those of one rank.
    """

    scheduler: Scheduler
    cost: StepCost
    num_blocks: int
    block_size: int
    prefix_caching: bool
    cache_generated: bool
    max_model_len: int
    by_iteration: bool = False
    attention_ranks: int = 1
    partial_blocks: bool = False
    timeouts: Timeouts = field(default_factory=Timeouts)

    def kv_cache(self) -> KvCache:
        """Return the empty KV cache of a replica."""
        return KvCache(
            self.num_blocks,
            self.block_size,
            prefix_caching=self.prefix_caching,
            cache_generated=self.cache_generated,
            partial_blocks=self.partial_blocks,
        )


@dataclass(frozen=True, slots=True)
class Pool:
    """Equal *replicas* that run *engine* and serve the requests for one *service*."""

    engine: Engine
    replicas: int
    service: int = 0


class Cluster:
    """Pools of replicas behind *router*, serving *traffic*.

    Parameters
    ----------
    pools
        Their replicas are numbered on from pool to pool.
    on_progress
        Called with the number of requests answered so far, after each of them.
    """

    def __init__(
        self,
        pools: Sequence[Pool],
        router: Router,
        traffic: Traffic,
        on_progress: Callable[[int], None] | None = None,
    ) -> None:
        self._env, self._log, self._client = Environment(), StrideLog(), Client(traffic)
        self._router, self._on_progress = router, on_progress
        self._answered = 0
        self._arrival: Moment | None = None
        self._arrival_s = math.inf
        self._waits_for_batches = any(pool.engine.scheduler.keeps_batch for pool in pools)
        self._replicas: list[Replica] = []
        self._services: dict[int, list[Replica]] = {pool.service: [] for pool in pools}
        self._routed = dict.fromkeys(self._services, 0)
        for pool in pools:
            servers = self._servers(pool)
            self._replicas += servers
            self._services[pool.service] += servers

    def run(self) -> StrideRows:
        """Serve all requests to the end and return the strides; what became of a request is written on it."""
        self._await_arrival()
        self._env.run()
        return self._log.rows()

    def _servers(self, pool: Pool) -> Sequence[Replica]:
        """Return what the router chooses among: replicas, or the attention ranks of all of them."""
        engine, first = pool.engine, len(self._replicas)
        number = engine.attention_ranks
        if number == 1:
            return [self._replica(engine, first + index, Replica) for index in range(pool.replicas)]
        ranks = [self._replica(engine, first + index, Rank) for index in range(pool.replicas * number)]
        for leader in range(0, len(ranks), number):
            Lockstep(self._env, ranks[leader : leader + number])
        return ranks

    def _replica(self, engine: Engine, index: int, kind: type[R]) -> R:
        return kind(
            self._env,
            index,
            engine.scheduler,
            engine.cost,
            engine.kv_cache(),
            self._log,
            max_model_len=engine.max_model_len,
            by_iteration=engine.by_iteration,
            timeouts=engine.timeouts,
            more_to_come=lambda: self._client.next_s < math.inf,
            on_done=self._done,
        )

    def _await_arrival(self) -> None:
        """Be there when the client sends next; an answer may have brought that forward."""
        next_s = self._client.next_s
        if next_s == self._arrival_s:
            return
        if self._arrival is not None:
            self._arrival.cancel()
        self._arrival_s = next_s
        self._arrival = Moment(self._env, next_s, self._arrive, ARRIVALS) if next_s < math.inf else None

    def _arrive(self, _moment: Event) -> None:
        """Route everything that the client sends at this instant."""
        self._arrival, self._arrival_s = None, math.inf
        while self._client.next_s <= self._env.now:
            request = self._client.send()
            self._route(request)
        self._await_arrival()
        if self._waits_for_batches and self._arrival is None:
            for replica in self._replicas:
                replica.wake()

    def _route(self, request: Request) -> None:
        servers, routed = self._services[request.service], self._routed[request.service]
        self._routed[request.service] += 1
        servers[self._router.choose(request, servers, routed)].submit(request)

    def _done(self, request: Request) -> None:
        self._answered += 1
        self._client.ended(request, self._env.now)
        self._await_arrival()
        if self._on_progress is not None:
            self._on_progress(self._answered)
