"""Pools of equal replicas: what rows do not tell of them, and what came of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.metrics.binding import Binding, binding_limit
from sim.metrics.instances import InstanceRows, InstanceState
from sim.metrics.power import GpuPower
from sim.metrics.ratio import ratio
from sim.metrics.rows import RequestRows, StrideRows
from sim.metrics.time_use import TimeUse, combined
from sim.metrics.transfers import TransferRows
from sim.profiles.prices import GpuPrice

__all__ = ["PoolContext", "PoolSummary", "busiest_link", "combined_use", "of_replicas", "summarise_pool"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PoolContext:
    """What the rows of a run do not tell of one pool.

    Attributes
    ----------
    first, replicas
        Number of its first replica, and of how many its rows tell: with attention data parallel these are ranks.
    num_gpus
        Of the whole pool.
    kv_blocks, block_size
        Pool of one replica [blocks] and tokens in a block; without the latter, a stride counts as if it held from its
        start the blocks that it holds at its end.
    draft_tokens
        Length of the drafts of speculative decoding; 0 without it [tokens].
    single_steps
        Why every iteration was simulated by itself, if it was.
    gpu_price, gpu_power
        Price by the hour and power draw of one GPU, if known.
    attention_ranks
        Of a replica those that have rows of their own.
    lives
        When replicas, those of other pools included, were in which state; None: all of them always ready.
    link_bytes_per_s
        What each of these replicas sends or receives at most [B/s]; 0: no KV moves.
    time_use
        Where the time of its iterations goes.
    """

    num_gpus: int
    replicas: int
    kv_blocks: int
    block_size: float = math.inf
    name: str = ""
    first: int = 0
    draft_tokens: float = 0.0
    single_steps: str = ""
    gpu_price: GpuPrice | None = None
    gpu_power: GpuPower | None = None
    attention_ranks: int = 1
    lives: InstanceRows | None = None
    link_bytes_per_s: float = 0.0
    time_use: TimeUse = field(default_factory=TimeUse)

    def has(self, replica: Ints) -> Bools:
        """Return which of the *replica* numbers are its own."""
        return (replica >= self.first) & (replica < self.first + self.replicas)

    def strides(self, strides: StrideRows) -> StrideRows:
        """Return the strides of its replicas."""
        own = self.has(strides.replica)
        return strides if own.all() else strides.where(own)

    @property
    def own_lives(self) -> InstanceRows | None:
        """The lives of its own replicas."""
        return None if self.lives is None else self.lives.where(self.has(self.lives.replica))

    def serving(self, duration_s: float) -> float:
        """Return how many of its replicas, or ranks, could serve, on average over a run of *duration_s* [s]."""
        if (lives := self.own_lives) is None:
            return self.replicas
        served_s = lives.time_s(InstanceState.READY, InstanceState.DRAINING)
        return ratio(served_s * self.attention_ranks, duration_s)

    def paid_gpus(self, duration_s: float) -> float:
        """Return how many of its GPUs are paid for, starting and draining included, on average over a run."""
        if (lives := self.own_lives) is None:
            return self.num_gpus
        paid_s = lives.time_s(InstanceState.STARTING, InstanceState.READY, InstanceState.DRAINING)
        gpus = self.num_gpus * self.attention_ranks / self.replicas
        return ratio(paid_s * gpus, duration_s)


@dataclass(frozen=True, slots=True)
class PoolSummary:
    """One pool in numbers.

    *busy_share* is the part of its replicas' time that iterations took, *link_utilization* the part of what their links
    could have moved that they did. *num_gpus* are paid for on average. *price* is of one GPU by the hour, *power* its
    draw; None: not known. A pool that only prefills has *completed* a request when its KV is sent.
    """

    name: str
    replicas: int
    num_gpus: float
    completed: int
    output_tokens: int
    running_mean: float
    kv_utilization_peak: float
    busy_share: float
    binding: Binding
    price: GpuPrice | None = None
    power: GpuPower | None = None
    link_utilization: float | None = None

    @property
    def usd_per_hour(self) -> float | None:
        """What its GPUs cost together [$/h]."""
        return None if self.price is None else self.num_gpus * self.price.usd_per_hour

    @property
    def power_w(self) -> float | None:
        """What its boards draw together on average [W]."""
        return None if self.power is None else self.num_gpus * self.power.mean_w(self.busy_share)

    @property
    def facility_power_w(self) -> float | None:
        """What the data centre draws for it on average [W]."""
        return None if self.power is None else self.power.facility_w(self.busy_share, self.num_gpus)

    def as_dict(self) -> dict[str, Any]:
        """Return it under its public keys."""
        return {
            "name": self.name,
            "replicas": self.replicas,
            "gpus": self.num_gpus,
            "completed": self.completed,
            "total_output_tokens": self.output_tokens,
            "running_mean": self.running_mean,
            "kv_utilization_peak": self.kv_utilization_peak,
            "busy_share": self.busy_share,
            "binding_limit": self.binding.limit,
            "price": None if self.price is None else self.price.as_dict(),
            "facility_power_w": self.facility_power_w,
            **({} if self.link_utilization is None else {"kv_link_utilization": self.link_utilization}),
        }


def summarise_pool(
    pool: PoolContext,
    requests: RequestRows,
    strides: StrideRows,
    duration_s: float,
    transfers: TransferRows | None = None,
) -> PoolSummary:
    """Return what came of *pool* in a run of *duration_s*."""
    completed = requests.completed & pool.has(requests.replica)
    own = pool.strides(strides)
    replica_time_s = duration_s * pool.serving(duration_s)
    busy_s = float(own.duration_s.sum())
    sent = 0 if transfers is None else int(pool.has(transfers.prefill_replica).sum())
    return PoolSummary(
        name=pool.name,
        replicas=pool.replicas,
        num_gpus=pool.paid_gpus(duration_s),
        completed=int(completed.sum()) + sent,
        output_tokens=int(requests.emitted_tokens[completed].sum()),
        running_mean=ratio(float(np.dot(own.running, own.duration_s)), duration_s),
        kv_utilization_peak=ratio(int(own.kv_blocks.max(initial=0)), pool.kv_blocks),
        busy_share=ratio(busy_s, replica_time_s),
        binding=binding_limit(own, replica_time_s, pool.time_use.by_resource),
        price=pool.gpu_price,
        power=pool.gpu_power,
        link_utilization=None if transfers is None else _link_utilization(pool, transfers, replica_time_s),
    )


def _link_utilization(pool: PoolContext, transfers: TransferRows, replica_time_s: float) -> float | None:
    """Return the share of what the links of *pool* could have moved that they did; None where it has none."""
    if not pool.link_bytes_per_s:
        return None
    own = pool.has(transfers.prefill_replica) | pool.has(transfers.decode_replica)
    return ratio(float(transfers.moved_bytes[own].sum()), pool.link_bytes_per_s * replica_time_s)


def busiest_link(pools: Sequence[PoolSummary]) -> float:
    """Return the largest share that the links of any of *pools* had of what they can move."""
    return max((pool.link_utilization or 0.0 for pool in pools), default=0.0)


def of_replicas(pools: Sequence[PoolContext], value: Callable[[PoolContext], float]) -> Floats:
    """Return the *value* of its pool for every replica, by its number."""
    return np.repeat([float(value(pool)) for pool in pools], [pool.replicas for pool in pools])


def combined_use(pools: Sequence[PoolContext], strides: StrideRows) -> TimeUse:
    """Return the use of the iteration time of all pools together."""
    busy_s = [float(pool.strides(strides).duration_s.sum()) for pool in pools]
    return combined([pool.time_use for pool in pools], busy_s)
