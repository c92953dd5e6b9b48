"""The replica where the prompt costs least, by what is cached there and by what is to be done there already."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from sim.request import Request
from sim.router.active import ActivePrompts
from sim.router.base import Choice, Load, Router
from sim.router.column import Column, Floats, any_best
from sim.router.fleet import Fleet
from sim.router.gauge import Gauge, Staleness
from sim.router.prefixes import PrefixIndex

__all__ = ["KvAware"]


class KvAware(Router):
    """NVIDIA Dynamo's KV router: the fewest blocks, those to prefill times *overlap_score_weight*, and those to decode.

    The blocks to prefill are those of the prompts without a first token yet, less what was cached of them when they
    were routed, and those of this prompt less what is cached; the blocks to decode are the different ones of all
    outstanding prompts and of this one. More weight follows the cache, none balances only. Of equal costs it takes any.
    With *router_temperature* it draws by exp(-cost / temperature), with costs scaled from 0 to 1.

    Source: `lib/kv-router/src/scheduling/selector.rs` of ai-dynamo/dynamo, and "Router Design" of its documentation,
    whose defaults these are. Dynamo hears of every cached block by events. Here the router takes as cached what it sent
    to a replica lately, as much as the KV cache has room for.
    """

    kind: Literal["kv_aware"] = "kv_aware"
    overlap_score_weight: float = Field(1.0, ge=0, description="Weight of blocks to prefill against blocks to decode.")
    router_temperature: float = Field(0.0, ge=0, description="Randomness of the choice; 0: always the lowest cost.")
    block_tokens: int = Field(16, ge=1, description="Only full blocks of this size count as cached [tokens].")
    staleness_s: Staleness = 0.0

    def begin(self, fleet: Fleet) -> Choice:
        """Remember nothing yet."""
        prefixes = PrefixIndex(lambda replica: fleet.loads[replica].kv_tokens)
        fleet.watch(prefixes)
        pending, active = Column(Gauge(fleet, self._to_prefill, self.staleness_s)), ActivePrompts()
        fleet.watch(active)

        def choose(request: Request) -> int:
            path = prefixes.path(request)
            hits = prefixes.hits(path)
            costs = pending.values + active.tokens
            for replica, tokens in hits.items():
                costs[replica] -= self.overlap_score_weight * (tokens - tokens % self.block_tokens)
            for replica, tokens in active.shared(path).items():
                costs[replica] -= tokens
            chosen = any_best(costs, fleet) if not self.router_temperature else self._drawn(costs, fleet)
            hit = hits.get(chosen, 0)
            request.expected_hit_tokens = min(hit - hit % self.block_tokens, request.input_tokens - 1)
            prefixes.insert(path, chosen)
            active.add(request, path, chosen)
            return chosen

        return choose

    def _to_prefill(self, replica: Load) -> float:
        return self.overlap_score_weight * replica.pending_tokens

    def _drawn(self, costs: Floats, fleet: Fleet) -> int:
        ready = costs[fleet.ready]
        spread = np.ptp(ready) or 1.0
        likely = np.cumsum(np.exp(-(ready - ready.min()) / spread / self.router_temperature))
        return fleet.ready[int(np.searchsorted(likely, next(fleet.uniforms) * likely[-1], side="right"))]
