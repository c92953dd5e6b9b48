"""Burstier or more regular than independent users."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from sim.workload.arrivals.base import OpenLoop, Rate
from sim.workload.streams import stream
from sim.workload.traffic import Floats

__all__ = ["GammaArrivals"]


class GammaArrivals(OpenLoop):
    """Gamma distributed gaps, as ``vllm bench serve --burstiness`` makes them (burstiness = 1 / cv^2)."""

    kind: Literal["gamma"] = "gamma"
    rate: Rate = Field(description="Mean rate [requests/s].")
    cv: float = Field(
        gt=0,
        examples=[2.0],
        description="Standard deviation of the gaps over their mean: 1 is Poisson, more is burstier.",
    )

    def times_s(self, count: int, seed: int, beside: Path) -> Floats:
        """Return *count* rising arrival times [s]."""
        shape = self.cv**-2
        return np.cumsum(stream(seed, "arrivals").standard_gamma(shape, count)) / (shape * self.rate)
