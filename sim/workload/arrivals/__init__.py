"""Arrival policies, chosen by ``kind``."""

from typing import TYPE_CHECKING

from sim.policy import union_of
from sim.workload.arrivals.base import ArrivalPolicy

__all__ = ["AnyArrivals", "ArrivalPolicy"]

if TYPE_CHECKING:
    AnyArrivals = ArrivalPolicy
else:
    AnyArrivals = union_of(__name__, ArrivalPolicy)
