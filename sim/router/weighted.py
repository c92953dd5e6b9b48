"""The replica with the best weighted sum of scores."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from sim.request import Request
from sim.router.base import Choice, Router
from sim.router.column import Column, Floats, any_best
from sim.router.fleet import Fleet
from sim.router.gauge import Gauge, Staleness
from sim.router.prefixes import PrefixIndex

__all__ = ["Weighted"]

_BLOCK_TOKENS = 16


class Weighted(Router):
    """The highest weighted sum of scores from 0 to 1, of several any: the endpoint picker of Gateway API and llm-d.

    *queue* and *running* score the fewest waiting or running requests 1, the most 0, and all 1 where they are equal;
    *kv_cache* the share of KV blocks that is free; *prefix* the share of the prompt, in blocks of 16 tokens, that the
    replica was sent before; *session* 1 where the session's last request went. State is as old as the last report; what
    was sent since then it does not see.

    Source: `pkg/epp/framework/plugins/scheduling/scorer` of kubernetes-sigs/gateway-api-inference-extension, with its
    default weights and intervals: `queue-scorer` 2, `kv-cache-utilization-scorer` 2, `prefix-cache-scorer` 3 with 256
    blocks of a prompt and 31,250 of a replica, metrics every 50 ms. *session* is llm-d's `session-affinity-scorer`.
    """

    kind: Literal["weighted"] = "weighted"
    queue: float = Field(2.0, ge=0, description="Weight of a short queue.")
    kv_cache: float = Field(2.0, ge=0, description="Weight of a free KV cache.")
    prefix: float = Field(3.0, ge=0, description="Weight of a known prefix.")
    running: float = Field(0.0, ge=0, description="Weight of few running requests.")
    session: float = Field(0.0, ge=0, description="Weight of the session's last replica.")
    max_prefix_tokens: int = Field(4096, ge=16, description="Beginning of a prompt that is compared [tokens].")
    lru_tokens: int = Field(500_000, ge=1, description="What is remembered of each replica [tokens].")
    staleness_s: Staleness = Field(0.05, gt=0)

    def begin(self, fleet: Fleet) -> Choice:
        """Remember nothing yet."""
        loads = _LoadScores(self, fleet)
        prefixes = PrefixIndex(lambda replica: self.lru_tokens)
        fleet.watch(prefixes)
        last: dict[str, int] = {}

        def choose(request: Request) -> int:
            costs = loads.costs().copy()
            path = prefixes.path(request)
            hits = prefixes.hits(path)
            self._count_hits(costs, hits, request.input_tokens)
            session = request.session_id
            if self.session and session in last:
                costs[last[session]] -= self.session
            chosen = any_best(costs, fleet)
            request.expected_hit_tokens = min(hits.get(chosen, 0), request.input_tokens - 1)
            prefixes.insert(path, chosen)
            if session is not None:
                last[session] = chosen
            return chosen

        return choose

    def _count_hits(self, costs: Floats, hits: dict[int, int], input_tokens: int) -> None:
        blocks = min(input_tokens, self.max_prefix_tokens) // _BLOCK_TOKENS
        for replica, tokens in hits.items():
            if blocks:
                costs[replica] -= self.prefix * min(tokens // _BLOCK_TOKENS, blocks) / blocks


class _LoadScores:
    """The part of the scores that is the same for all requests between two reports."""

    def __init__(self, weights: Weighted, fleet: Fleet) -> None:
        self._weights, self._fleet = weights, fleet
        interval_s = weights.staleness_s
        self._waiting = Column(Gauge(fleet, lambda replica: replica.waiting, interval_s))
        self._running = Column(Gauge(fleet, lambda replica: replica.running, interval_s))
        self._kv_usage = Column(Gauge(fleet, lambda replica: replica.kv_usage, interval_s))
        self._columns = (self._waiting, self._running, self._kv_usage)
        self._costs: Floats = np.empty(0)

    def costs(self) -> Floats:
        """Return the negative sum of the scores by the number of the replica; infinite where one is not ready."""
        if not all(column.fresh for column in self._columns):
            self._costs = self._anew()
            for column in self._columns:
                column.fresh = True
        return self._costs

    def _anew(self) -> Floats:
        weights, ready = self._weights, self._fleet.ready
        costs = np.full(len(self._waiting.values), np.inf)
        scores = weights.queue * _fewest(self._waiting.values[ready])
        scores += weights.running * _fewest(self._running.values[ready])
        scores += weights.kv_cache * (1 - self._kv_usage.values[ready])
        costs[ready] = -scores
        return costs


def _fewest(counts: Floats) -> Floats:
    """Score the fewest 1 and the most 0."""
    spread = np.ptp(counts)
    return (counts.max() - counts) / spread if spread else np.ones(len(counts))
