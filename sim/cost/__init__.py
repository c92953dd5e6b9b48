"""What an iteration costs: pure functions of what it computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim.cost.affine import Affine
from sim.cost.pace import CostModel, Pace, Rebalances, StepCost
from sim.cost.roofline import Roofline
from sim.policy import union_of

__all__ = ["Affine", "AnyCostModel", "CostModel", "Pace", "Rebalances", "Roofline", "StepCost"]

if TYPE_CHECKING:
    AnyCostModel = Any
else:
    AnyCostModel = union_of(__name__, CostModel)
