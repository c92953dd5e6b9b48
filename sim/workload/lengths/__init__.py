"""Length policies, chosen by ``kind``."""

from typing import TYPE_CHECKING

from sim.policy import union_of
from sim.workload.lengths.base import LengthPolicy, Lengths

__all__ = ["AnyLengths", "LengthPolicy", "Lengths"]

if TYPE_CHECKING:
    AnyLengths = LengthPolicy
else:
    AnyLengths = union_of(__name__, LengthPolicy)
