"""A range of numbers, linear or logarithmic."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from sim.section import Section

__all__ = ["Range"]


class Range(Section):
    """Numbers from *low* to *high*."""

    low: float = Field(description="Smallest value.")
    high: float = Field(description="Largest value.")
    scale: Literal["linear", "log"] = Field("linear", description="What is uniform: the value or its logarithm.")
    whole: bool = Field(False, description="Round to whole numbers.")

    def at(self, share: float) -> float | int:
        """Return the value that the *share* of the range is below."""
        if self.scale == "log":
            value = self.low * math.exp(share * math.log(self.high / self.low))
        else:
            value = self.low + share * (self.high - self.low)
        return round(value) if self.whole else value

    def check(self, path: str) -> None:
        """Raise a `ValueError` that names *path* if there is no number from low to high."""
        if self.high <= self.low:
            raise ValueError(f"{path}: high ({self.high:g}) must be above low ({self.low:g})")
        if self.scale == "log" and self.low <= 0:
            raise ValueError(f"{path}: low ({self.low:g}) must be above 0 on a log scale")
