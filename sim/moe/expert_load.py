"""What an iteration of so many tokens loads on the ranks, as a table that any stride can read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sim.moe.expert_map import Floats

__all__ = ["ExpertLoad", "RankLoad"]


class RankLoad(NamedTuple):
    """What one layer asks of the most loaded rank, on average over layers and iterations.

    Attributes
    ----------
    max_over_mean
        Its rows over the mean of all ranks.
    touched
        Experts in its slots that any token chose.
    dropped
        Share of all choices that exceeded a capacity.
    """

    max_over_mean: float
    touched: float
    dropped: float


@dataclass(frozen=True, slots=True, eq=False)
class ExpertLoad:
    """Expected loads by the tokens of all ranks.

    Attributes
    ----------
    tokens
        Points of the table, ascending.
    max_over_mean, touched, dropped
        As in `RankLoad`, at these points.
    ranks_per_token, nodes_per_token
        Ranks, and nodes, to which one token goes on average.
    fetched_slots
        Slots of a layer, of all ranks, whose expert had to be fetched for this placement; 0 without rebalancing.
    """

    ranks: int
    slots_per_rank: int
    tokens: Floats
    max_over_mean: Floats
    touched: Floats
    dropped: Floats
    ranks_per_token: float
    nodes_per_token: float
    fetched_slots: float = 0.0

    @classmethod
    def average(cls, loads: Sequence[ExpertLoad]) -> ExpertLoad:
        """Return the mean of *loads*, which are of the same ranks and have the same points."""
        worst, touched, dropped = (
            np.mean([getattr(load, name) for load in loads], axis=0) for name in ("max_over_mean", "touched", "dropped")
        )
        ranks, nodes, fetched = (
            float(np.mean([getattr(load, name) for load in loads]))
            for name in ("ranks_per_token", "nodes_per_token", "fetched_slots")
        )
        first = loads[0]
        return cls(first.ranks, first.slots_per_rank, first.tokens, worst, touched, dropped, ranks, nodes, fetched)

    def at(self, tokens: float) -> RankLoad:
        """Return the load of an iteration of *tokens*.

        Between two points the excess of the most loaded rank is taken as a power of the tokens, which chance makes it.
        """
        place, points = np.log(max(tokens, 1.0)), np.log(self.tokens)
        excess = np.exp(np.interp(place, points, np.log(np.maximum(self.max_over_mean - 1.0, 1e-9))))
        touched, dropped = (float(np.interp(place, points, values)) for values in (self.touched, self.dropped))
        return RankLoad(1.0 + float(excess), touched, dropped)
