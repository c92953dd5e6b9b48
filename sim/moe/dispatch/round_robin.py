"""One copy after the other."""

from __future__ import annotations

from typing import Literal

import numpy as np

from sim.moe.dispatch.base import Copies, Dispatch
from sim.moe.expert_map import Integers

__all__ = ["RoundRobin"]


class RoundRobin(Dispatch):
    """The copies of an expert take its tokens in turn (TensorRT-LLM, vLLM): they differ by one token at most."""

    kind: Literal["round_robin"] = "round_robin"

    def deal(self, taken: Integers, copies: Copies, random: np.random.Generator) -> None:
        """Deal evenly; which copy is first differs by iteration."""
        shared = np.flatnonzero(copies.total > 1)
        total, turn = copies.total[shared], random.integers(0, 2**31, (len(taken), 1))
        place = (copies.number[shared] + turn) % total
        taken[:, shared] = (taken[:, shared] + total - 1 - place) // total
