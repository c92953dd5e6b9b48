"""Every expert alike."""

from __future__ import annotations

from typing import Literal

import numpy as np

from sim.moe.expert_map import Floats
from sim.moe.popularity.base import Popularity

__all__ = ["Uniform"]


class Uniform(Popularity):
    """Every expert equally popular; an iteration is unbalanced by chance only."""

    kind: Literal["uniform"] = "uniform"

    def draw(self, layers: int, experts: int, random: np.random.Generator) -> Floats:
        """Return ones."""
        return np.ones((layers, experts))
