"""Admission policies, chosen by ``kind``: who is turned away before any replica is chosen."""

from typing import TYPE_CHECKING

from sim.admission.base import Admission, Verdict
from sim.policy import union_of

if TYPE_CHECKING:
    AnyAdmission = Admission
else:
    AnyAdmission = union_of(__name__, Admission)

__all__ = ["Admission", "AnyAdmission", "Verdict"]
