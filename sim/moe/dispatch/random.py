"""Any copy."""

from __future__ import annotations

from typing import Literal

import numpy as np

from sim.moe.dispatch.base import Copies, Dispatch, deal_by_weight
from sim.moe.expert_map import Integers

__all__ = ["Random"]


class Random(Dispatch):
    """Every token takes any copy (SGLang ``dynamic``)."""

    kind: Literal["random"] = "random"

    def deal(self, taken: Integers, copies: Copies, random: np.random.Generator) -> None:
        """Deal by equal weights."""
        deal_by_weight(taken, copies, np.ones(taken.shape), random)
