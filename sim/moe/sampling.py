"""Iterations drawn at random: how the choices of many tokens load slots and ranks.

A table of expectations is made once for a placement, and then holds for any batch. Small batches are drawn token by
token. In large ones the tokens of an expert are binomial, scaled to the fixed number of choices of all: the scaling
restores the negative correlation between experts, of which a token chooses a fixed number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.moe.capacity import Capacity
from sim.moe.dispatch import Dispatch
from sim.moe.expert_load import ExpertLoad
from sim.moe.expert_map import ExpertMap, Floats, Integers
from sim.moe.routing import Routing

__all__ = ["POINTS", "Sampler"]

POINTS = np.array([1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 512, 2048, 8192, 32768, 131072], dtype=np.float64)
"""Batches that are tabulated [tokens]."""
_DRAWN_CHOICES = 1024
"""Experts times tokens up to which every token is drawn."""
_DRAWN_REPEATS = 4
"""So many small batches are drawn for a large one: they scatter more."""
_TRAFFIC_TOKENS = 64


@dataclass(frozen=True, slots=True)
class Sampler:
    """Draws iterations for one placement."""

    placed: ExpertMap
    routing: Routing
    dispatch: Dispatch
    capacity: Capacity | None

    def table(self, shares: Floats, random: np.random.Generator) -> ExpertLoad:
        """Return the means over iterations of these *shares*, shape (iterations, layers, experts)."""
        layout = self.placed.layout
        drawn, many = max(1, _DRAWN_CHOICES // layout.experts), np.tile(shares, (_DRAWN_REPEATS, 1, 1))
        routes = np.cumsum([self.routing.choose(many, random) for _ in range(drawn)], axis=0)
        rows = []
        for tokens in POINTS:
            runs = max(1, round(tokens / self.routing.run_tokens))
            counts = routes[runs - 1] if runs <= drawn else self._binomial(shares, runs, random)
            rows.append(self._load(counts, random))
        worst, touched, dropped = np.array(rows).T
        ranks, nodes = self._traffic(shares, random)
        return ExpertLoad(layout.ranks, layout.slots_per_rank, POINTS, worst, touched, dropped, ranks, nodes)

    def _binomial(self, shares: Floats, tokens: int, random: np.random.Generator) -> Integers:
        inclusion = np.minimum(self.routing.top_k * shares, 1.0)
        return random.binomial(tokens, inclusion)

    def _load(self, counts: Integers, random: np.random.Generator) -> tuple[float, float, float]:
        """Return `RankLoad` of iterations with these tokens of each expert, shape (iterations, layers, experts)."""
        taken = self.dispatch.split(counts, self.placed, random)
        computed = taken.astype(np.float64) if self.capacity is None else self.capacity.limit(taken)
        by_rank = self.placed.by_rank(computed)
        rows = by_rank.sum(axis=-1)
        busiest = rows.argmax(axis=-1)[..., None]
        chosen = np.maximum(taken.sum(axis=-1), 1)
        worst = np.take_along_axis(rows, busiest, axis=-1)[..., 0] / chosen * self.placed.layout.ranks
        touched = np.take_along_axis((by_rank > 0).sum(axis=-1), busiest, axis=-1)
        return float(worst.mean()), float(touched.mean()), float((1.0 - rows.sum(axis=-1) / chosen).mean())

    def _traffic(self, shares: Floats, random: np.random.Generator) -> tuple[float, float]:
        """Return to how many ranks and nodes a token goes on average."""
        some = np.resize(shares, (_TRAFFIC_TOKENS, *shares.shape[1:]))
        slots = self.dispatch.split(self.routing.choose(some, random).astype(np.int64), self.placed, random)
        reached = self.placed.by_rank(slots).any(axis=-1)
        by_node = reached.reshape(*reached.shape[:-1], self.placed.layout.nodes, -1).any(axis=-1)
        return float(reached.sum(axis=-1).mean()), float(by_node.sum(axis=-1).mean())

