"""Longest first, over all ranks."""

from __future__ import annotations

from typing import Literal

import numpy as np

from sim.moe.expert_map import ExpertMap, Floats, Layout
from sim.moe.packing import pack, replicate
from sim.moe.placement.base import Placement

__all__ = ["Greedy"]


class Greedy(Placement):
    """The hottest experts get copies; the heaviest copy goes to the lightest rank that has none of that expert.

    Graham's longest-processing-time rule (1969) with equally many slots on each rank.
    """

    kind: Literal["greedy"] = "greedy"

    def place(self, loads: Floats, layout: Layout) -> ExpertMap:
        """Return the map, each layer by itself."""
        rows = []
        for row in loads.astype(np.float32):
            copies = replicate(row, layout.slots)
            share = (row / np.bincount(copies).astype(np.float32))[copies]
            rows.append(copies[pack(share, layout.ranks, copies.tolist()).ravel()])
        return ExpertMap(layout, np.array(rows))
