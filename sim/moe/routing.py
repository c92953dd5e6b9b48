"""Which experts a token chooses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.moe.expert_map import Floats
from sim.moe.popularity import limited

__all__ = ["Mask", "Routing", "distinct"]

Mask = NDArray[np.bool_]


def distinct(inclusion: Floats, tokens: float) -> Floats:
    """Return how many experts *tokens* touch on average: each is missed by one token with its 1 - inclusion.

    Exact for tokens that choose independently of each other. Sums over the last axis.
    """
    touched: Floats = -np.expm1(tokens * np.log1p(-np.minimum(inclusion, 1.0 - 1e-15))).sum(axis=-1)
    return touched


@dataclass(frozen=True, slots=True)
class Routing:
    """A router that gives every token *top_k* different experts.

    Attributes
    ----------
    groups, group_limit
        Groups of consecutive experts, and from how many of them one token may choose (DeepSeek-V3: 4 of 8).
    run_tokens
        How many tokens in a row choose the same experts, on average.
    """

    top_k: int
    groups: int = 1
    group_limit: int | None = None
    run_tokens: float = 1.0

    def shares(self, weights: Floats) -> Floats:
        """Return the shares of all choices that go to each expert, as far as this router can give them."""
        return limited(weights, self.top_k)

    def choose(self, shares: Floats, random: np.random.Generator) -> Mask:
        """Return the experts of one token for each row of *shares*, shape (..., experts).

        Expert *e* is chosen with probability ``top_k * shares[e]`` exactly: systematic sampling in random order
        (Madow 1949). With groups, the same draws the groups first, and is exact unless a group is always drawn.
        """
        if self.group_limit is None or self.group_limit >= self.groups:
            return _systematic(self.top_k * shares, random)
        by_group = shares.reshape(*shares.shape[:-1], self.groups, -1)
        limit = self.group_limit
        drawn = limited(by_group.sum(axis=-1), limit)
        allowed = _systematic(limit * drawn, random)
        within = np.where(allowed[..., None], by_group / (limit * drawn)[..., None], 0.0)
        return _systematic(self.top_k * limited(within.reshape(shares.shape), self.top_k), random)


def _systematic(inclusion: Floats, random: np.random.Generator) -> Mask:
    """Draw a fixed number of items, the sum of *inclusion* along the last axis, each with its probability."""
    order = np.argsort(random.random(inclusion.shape, dtype=np.float32), axis=-1)
    passed = np.cumsum(np.take_along_axis(inclusion, order, axis=-1), axis=-1)
    passed[..., -1] = np.rint(passed[..., -1])  # whole but for rounding
    steps = np.floor(passed - random.random((*inclusion.shape[:-1], 1)))
    chosen = np.diff(steps, axis=-1, prepend=-1.0) > 0
    mask = np.empty(inclusion.shape, dtype=np.bool_)
    np.put_along_axis(mask, order, chosen, axis=-1)
    return mask
