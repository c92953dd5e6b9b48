"""Experts in order."""

from __future__ import annotations

from typing import Literal

import numpy as np

from sim.moe.expert_map import ExpertMap, Floats, Layout
from sim.moe.placement.base import Placement

__all__ = ["Contiguous"]


class Contiguous(Placement):
    """Consecutive experts on each rank, redundant slots from the first expert on: what vLLM and SGLang start with."""

    kind: Literal["contiguous"] = "contiguous"

    def place(self, loads: Floats, layout: Layout) -> ExpertMap:
        """Return the same slots for every layer."""
        return ExpertMap(layout, np.tile(layout.in_order(), (len(loads), 1)))
