"""Popularity by rank."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from sim.moe.expert_map import Floats
from sim.moe.popularity.base import Popularity

__all__ = ["Zipf"]


class Zipf(Popularity):
    """The n-th most popular expert weighs ``n ** -exponent``; which one that is differs by layer."""

    kind: Literal["zipf"] = "zipf"
    exponent: float = Field(ge=0, le=20, examples=[0.6], description="0: all alike.")

    def draw(self, layers: int, experts: int, random: np.random.Generator) -> Floats:
        """Return the weights, each layer in its own order."""
        weights = np.arange(1, experts + 1, dtype=np.float64) ** -self.exponent
        return random.permuted(np.tile(weights, (layers, 1)), axis=1)
