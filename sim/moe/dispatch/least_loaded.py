"""The copy with least to do."""

from __future__ import annotations

from typing import Literal

import numpy as np

from sim.moe.dispatch.base import Copies, Dispatch, deal_by_weight
from sim.moe.expert_map import Floats, Integers

__all__ = ["LeastLoaded"]

_ROUNDS = 16


class LeastLoaded(Dispatch):
    """Each batch is spread over the copies so that the most loaded rank has as little as possible (DeepSeek LPLB).

    The linear programme is approached by multiplicative weights (Arora, Hazan and Kale 2012): copies on ranks above
    the mean lose tokens to the others, round after round.
    """

    kind: Literal["least_loaded"] = "least_loaded"

    def deal(self, taken: Integers, copies: Copies, random: np.random.Generator) -> None:
        """Deal by weights that suit the batch."""
        deal_by_weight(taken, copies, self.weights(taken, copies), random)

    def weights(self, tokens: Integers, copies: Copies) -> Floats:
        """Return the share of its expert's *tokens* that each slot takes, of the shape of *tokens*."""
        layout = copies.placed.layout
        weights = np.broadcast_to(1.0 / copies.total, tokens.shape)
        for _ in range(_ROUNDS):
            load = copies.placed.by_rank((weights * tokens).reshape(-1, layout.slots)).sum(axis=-1)
            excess = load / np.maximum(load.mean(axis=-1, keepdims=True), 1e-300) - 1.0
            factor = np.exp(-np.clip(np.repeat(excess, layout.slots_per_rank, axis=-1), -1.0, 1.0))
            weights = weights * factor.reshape(tokens.shape)
            weights = weights / copies.by_expert(weights)[:, copies.expert]
        return weights
