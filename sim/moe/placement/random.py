"""Experts shuffled."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from sim.moe.expert_map import ExpertMap, Floats, Layout
from sim.moe.placement.base import Placement

__all__ = ["Random"]


class Random(Placement):
    """Every layer in its own random order: what a placement that knows nothing reaches on average."""

    kind: Literal["random"] = "random"
    seed: int = Field(0, ge=0, description="Seed of the shuffle.")

    def place(self, loads: Floats, layout: Layout) -> ExpertMap:
        """Return the shuffled slots of each layer."""
        random = np.random.default_rng(self.seed)
        in_order = np.tile(layout.in_order(), (len(loads), 1))
        return ExpertMap(layout, random.permuted(in_order, axis=1))
