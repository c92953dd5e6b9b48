"""Sweep policies, chosen by ``kind``: which points of an experiment's space are run."""

from typing import TYPE_CHECKING

from sim.policy import union_of
from sim.sweep.base import Settings, Sweep

__all__ = ["AnySweep", "Settings", "Sweep"]

if TYPE_CHECKING:
    AnySweep = Sweep
else:
    AnySweep = union_of(__name__, Sweep)
