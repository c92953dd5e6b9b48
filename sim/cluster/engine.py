"""What the replicas of a cluster run, and how many of them there are."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from sim.autoscaler import Autoscaler
from sim.cluster.deadlines import Timeouts
from sim.cluster.link import Port
from sim.cost import StepCost
from sim.kv import Eviction, KvCache, Pages, Tier, TieredKvCache
from sim.kv.tiers import Write
from sim.router.disaggregation import Role
from sim.scheduler import Acceptances, Running, Scheduler, Speculating, Tabled

__all__ = ["Engine", "Pool"]


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
    pages
        The blocks of a sequence, where layers have block tables of their own; None where all share one.
    tiers, write
        Where blocks are kept beside the pool, and when they are copied there.
    swap
        Where preempted requests may leave their blocks.
    eviction
        Which idle blocks of the prefix cache are evicted first.
    acceptances
        What is accepted of the drafts of speculative decoding; None without it.
    compile_s
        How long a replica compiles a grammar that is new to it [s].
    decides_ahead
        The next iteration is decided when one begins, so that an arrival is seen an iteration later.
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
    pages: Pages | None = None
    tiers: tuple[Tier, ...] = ()
    write: Write = "write_through"
    swap: Tier | None = None
    eviction: Eviction = "lru"
    acceptances: Acceptances | None = None
    compile_s: float = 0.0
    decides_ahead: bool = False

    @property
    def single_steps(self) -> str:
        """Why every iteration is stepped by itself; empty where strides are taken."""
        if self.by_iteration:
            return "stride is off"
        if self.acceptances is not None and self.attention_ranks > 1:
            return "drafts on attention data parallel ranks, each of which emits as it likes"
        return ""

    @property
    def room_tokens(self) -> int:
        """Tokens that the KV cache of a replica holds; where sequences have several tables, in those that keep all."""
        return self.num_blocks // max(self.pages.full if self.pages else 1, 1) * self.block_size

    def kv_cache(self) -> KvCache:
        """Return the empty KV cache of a replica."""
        options: dict[str, Any] = {
            "prefix_caching": self.prefix_caching,
            "cache_generated": self.cache_generated,
            "partial_blocks": self.partial_blocks,
            "draft_tokens": self.acceptances.tokens_each - 1 if self.acceptances else 0,
            "pages": self.pages,
            "swap": self.swap,
            "eviction": self.eviction,
        }
        if self.tiers and self.prefix_caching:
            return TieredKvCache(self.num_blocks, self.block_size, **options).keep_in(self.tiers, self.write)
        return KvCache(self.num_blocks, self.block_size, **options)

    def running(self) -> Running:
        """Return a replica's running requests, of which there are none yet."""
        windows = self.cost.windows
        if self.acceptances is not None:
            return Speculating(self.pages or Pages(self.block_size), windows, self.acceptances)
        return Running(self.block_size, windows) if self.pages is None else Tabled(self.pages, windows)


@dataclass(frozen=True, slots=True)
class Pool:
    """Equal *replicas* that run *engine* and serve the requests for one *service*.

    Attributes
    ----------
    gpus
        Accelerators of a replica.
    most
        Most replicas that there can be, those included that start or drain; 0: as many as there are.
    cold_start_s, grace_s
        How long a replica takes to become ready, and how long it may drain [s].
    role
        Other than ``both``, its replicas compute only prompts or write only answers, and do not come and go.
    port
        What ties them to those of the other role.
    autoscaler
        Decides how many replicas there are, from so many on; None: they stay as many.
    """

    engine: Engine
    replicas: int
    service: int = 0
    gpus: int = 1
    most: int = 0
    cold_start_s: float = 0.0
    grace_s: float = math.inf
    role: Role = "both"
    port: Port | None = None
    autoscaler: Autoscaler | None = None
