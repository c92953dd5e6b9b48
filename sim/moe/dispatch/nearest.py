"""The copy next door."""

from __future__ import annotations

from typing import Literal

import numpy as np

from sim.moe.dispatch.base import Copies, Dispatch, deal_by_weight
from sim.moe.expert_map import ExpertMap, Floats, Integers

__all__ = ["Nearest"]


class Nearest(Dispatch):
    """A copy on the token's own rank, else on its node, else any (SGLang ``static``).

    Tokens come from all ranks alike.
    """

    kind: Literal["nearest"] = "nearest"

    def deal(self, taken: Integers, copies: Copies, random: np.random.Generator) -> None:
        """Deal by what each copy is nearest to."""
        deal_by_weight(taken, copies, np.broadcast_to(self.weights(copies.placed).ravel(), taken.shape), random)

    def weights(self, placed: ExpertMap) -> Floats:
        """Return the share of its expert's tokens that each slot serves, shape (layers, slots)."""
        layout, experts = placed.layout, placed.physical_to_logical
        layers, rank = np.arange(len(experts))[:, None], np.arange(layout.slots) // layout.slots_per_rank
        node_of = np.arange(layout.ranks) // (layout.ranks // layout.nodes)
        on_rank, on_node = _copies(placed, rank, layout.ranks), _copies(placed, node_of[rank], layout.nodes)
        served = np.zeros(experts.shape)
        for source, node in enumerate(node_of):
            own, near = on_rank[layers, source, experts], on_node[layers, node, experts]
            anywhere = np.where(near > 0, (node_of[rank] == node) / np.maximum(near, 1), 1.0 / placed.copies())
            served += np.where(own > 0, (rank == source) / np.maximum(own, 1), anywhere)
        return served / layout.ranks


def _copies(placed: ExpertMap, place: Integers, number: int) -> Integers:
    """Count the copies of each expert at each of *number* places, shape (layers, places, experts)."""
    counts = np.zeros((len(placed.physical_to_logical), number, placed.layout.experts), dtype=np.int64)
    np.add.at(counts, (np.arange(len(counts))[:, None], place[None, :], placed.physical_to_logical), 1)
    return counts
