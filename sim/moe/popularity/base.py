"""What every popularity does."""

from __future__ import annotations

import numpy as np

from sim.moe.expert_map import Floats
from sim.policy import Policy

__all__ = ["Popularity", "limited"]


class Popularity(Policy):
    """Base of the policies that say how popular each expert of each layer is in the long run."""

    def draw(self, layers: int, experts: int, random: np.random.Generator) -> Floats:
        """Return positive weights of any scale, shape (layers, experts).

        Raises
        ------
        UserError
            The policy knows nothing of that many layers or experts.
        """
        raise NotImplementedError


def limited(weights: Floats, top_k: int) -> Floats:
    """Return *weights* as shares of all choices, of which none exceeds ``1 / top_k``.

    A token chooses an expert once at most; what the hottest experts cannot take goes to the others in proportion.
    Shape (..., experts), which sums to 1.
    """
    shares: Floats = weights / weights.sum(axis=-1, keepdims=True)
    for _ in range(top_k):  # each round fills at least one expert, or is the last
        full = shares >= 1.0 / top_k
        if not (shares > 1.0 / top_k + 1e-12).any():
            break
        rest = 1.0 - full.sum(axis=-1, keepdims=True) / top_k
        open_ = np.where(full, 0.0, shares)
        total = open_.sum(axis=-1, keepdims=True)
        scale = np.divide(rest, total, out=np.zeros_like(total), where=total > 0)
        shares = np.where(full, 1.0 / top_k, open_ * scale)
    return shares
