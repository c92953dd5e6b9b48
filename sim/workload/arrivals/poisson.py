"""Independent users."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from sim.workload.arrivals.base import OpenLoop, Rate, poisson_s
from sim.workload.traffic import Floats

__all__ = ["PoissonArrivals"]


class PoissonArrivals(OpenLoop):
    """A Poisson process: exponential gaps between requests of many independent users."""

    kind: Literal["poisson"] = "poisson"
    rate: Rate = Field(description="Mean rate [requests/s].")

    def times_s(self, count: int, seed: int, beside: Path) -> Floats:
        """Return *count* rising arrival times [s]."""
        return poisson_s(count, self.rate, seed)
