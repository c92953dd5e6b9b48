"""Limits to the tokens that one slot takes in an iteration."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from sim.moe.expert_map import Floats, Integers
from sim.section import Section

__all__ = ["Capacity"]


class Capacity(Section):
    """GShard's capacity factor (Lepikhin et al. 2021): a slot takes *factor* times the mean of all slots."""

    factor: float = Field(
        gt=0, examples=[1.5], description="Tokens that a slot takes at most, over the mean of all slots."
    )
    beyond: Literal["drop", "overflow"] = Field("drop", description="drop: lost; overflow: to slots with room.")

    def limit(self, taken: Integers) -> Floats:
        """Return what the slots compute of the tokens *taken*, shape (..., slots); the sum falls where tokens drop."""
        total = taken.sum(axis=-1, keepdims=True)
        room = np.ceil(self.factor * total / taken.shape[-1])
        kept: Floats = np.minimum(taken, room).astype(np.float64)
        if self.beyond == "drop":
            return kept
        free, excess = room - kept, total - kept.sum(axis=-1, keepdims=True)
        space = np.maximum(free.sum(axis=-1, keepdims=True), 1.0)
        spread: Floats = kept + free * np.minimum(excess / space, 1.0)
        return spread
