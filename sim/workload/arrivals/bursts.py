"""Silence, then many requests at once."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from sim.units import Seconds
from sim.workload.arrivals.base import OpenLoop, Rate, poisson_s
from sim.workload.streams import stream
from sim.workload.traffic import Floats

__all__ = ["BurstArrivals"]


class BurstArrivals(OpenLoop):
    """Bursts and pauses of random length, Poisson within a burst (an interrupted Poisson process).

    Code completion in the Azure trace of 2023 looks so: rate 2.6, bursts of 11 s, pauses of 27 s, sigma 1.3.
    """

    kind: Literal["bursts"] = "bursts"
    rate: Rate = Field(description="Mean rate over bursts and pauses [requests/s].")
    burst_s: Seconds = Field(gt=0, examples=[10.0], description="Mean length of a burst [s].")
    pause_s: Seconds = Field(ge=0, examples=[30.0], description="Mean length of a pause [s].")
    sigma: float | None = Field(
        None,
        ge=0,
        le=5,
        description="Lengths are lognormal with this standard deviation of their logarithm; missing: exponential.",
    )

    def times_s(self, count: int, seed: int, beside: Path) -> Floats:
        """Return *count* rising arrival times [s]; the first burst begins at once."""
        burst_time_s = poisson_s(count, self.rate * (self.burst_s + self.pause_s) / self.burst_s, seed)
        ends_s = self._burst_ends_s(burst_time_s[-1], seed)
        pauses_s = np.cumsum([0.0, *self._lengths_s(self.pause_s, len(ends_s), stream(seed, "pauses"))])
        times_s: Floats = burst_time_s + pauses_s[np.searchsorted(ends_s, burst_time_s)]
        return times_s

    def _burst_ends_s(self, last_s: float, seed: int) -> Floats:
        """Return when bursts end, on a clock that stands still in pauses, up to one after *last_s* [s]."""
        draws = stream(seed, "bursts")
        ends_s = np.zeros(1)
        while ends_s[-1] <= last_s:
            more = 16 + int(1.2 * (last_s - ends_s[-1]) / self.burst_s)
            ends_s = np.concatenate([ends_s, ends_s[-1] + np.cumsum(self._lengths_s(self.burst_s, more, draws))])
        return ends_s[1:]

    def _lengths_s(self, mean_s: float, count: int, draws: np.random.Generator) -> Floats:
        if self.sigma is None:
            return mean_s * draws.standard_exponential(count)
        return mean_s * np.exp(self.sigma * draws.standard_normal(count) - self.sigma**2 / 2)
