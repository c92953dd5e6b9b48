"""Everybody at once, for a while."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from sim.workload.arrivals.base import OpenLoop, Rate, poisson_s
from sim.workload.arrivals.shape import Crowd, RateShape
from sim.workload.traffic import Floats

__all__ = ["FlashCrowdArrivals"]


class FlashCrowdArrivals(Crowd, OpenLoop):
    """A Poisson process whose rate rises to a multiple, stays there, and falls back."""

    kind: Literal["flash_crowd"] = "flash_crowd"
    rate: Rate = Field(description="Rate before and after [requests/s].")

    def times_s(self, count: int, seed: int, beside: Path) -> Floats:
        """Return *count* rising arrival times [s]."""
        crowd = Crowd(at_s=self.at_s, factor=self.factor, rise_s=self.rise_s, hold_s=self.hold_s, fall_s=self.fall_s)
        return RateShape(crowds=(crowd,)).times_of(poisson_s(count, 1.0, seed), self.rate, beside)
