"""Experts dealt out."""

from __future__ import annotations

from typing import Literal

import numpy as np

from sim.moe.expert_map import ExpertMap, Floats, Layout
from sim.moe.placement.base import Placement

__all__ = ["RoundRobin"]


class RoundRobin(Placement):
    """Expert *e* on rank ``e mod ranks`` (vLLM ``expert_placement_strategy: round_robin``)."""

    kind: Literal["round_robin"] = "round_robin"

    def place(self, loads: Floats, layout: Layout) -> ExpertMap:
        """Return the same slots for every layer."""
        dealt = layout.in_order().reshape(layout.slots_per_rank, layout.ranks).T.ravel()
        return ExpertMap(layout, np.tile(dealt, (len(loads), 1)))
