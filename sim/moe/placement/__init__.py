"""Which expert each slot holds: one file a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim.moe.placement.base import Placement
from sim.moe.placement.contiguous import Contiguous
from sim.policy import union_of

__all__ = ["AnyPlacement", "Contiguous", "Placement"]

if TYPE_CHECKING:
    AnyPlacement = Any
else:
    AnyPlacement = union_of(__name__, Placement)
