"""All-reduces over a way that many accelerators share."""

from __future__ import annotations

from pydantic import Field

from sim.profiles.base import Profile
from sim.profiles.calibrated import AllReduceConstants

__all__ = ["LinkCalibration"]


class LinkCalibration(Profile):
    """Constants of all-reduces over one kind of way, such as PCIe, whose rate each accelerator's profile has."""

    aliases: tuple[str, ...] = ()
    all_reduce: dict[int, AllReduceConstants] = Field(min_length=1, description="By number of ranks.")
