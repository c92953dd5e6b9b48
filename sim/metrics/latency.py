"""Distributions of latencies: what a table row, an SLO clause and an interval ask of them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.metrics.ratio import ratio

__all__ = ["PERCENTILES", "Distribution", "Sample", "statistics_ms"]

PERCENTILES: dict[str, float] = {"median": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0}
"""The percentiles of every result, by the prefix of their key [%]."""


class Distribution(ABC):
    """Times whose moments, percentiles and share within a bound can be asked; all `nan` if there are none."""

    __slots__ = ()
    count: int
    mean_s: float
    std_s: float

    @abstractmethod
    def _at(self, rank: int) -> float:
        """Return the time of that *rank* from 0 in increasing order [s]."""

    @abstractmethod
    def _within(self, bound_s: float) -> int:
        """Return how many times are at most *bound_s*."""

    def percentile(self, percent: float) -> float:
        """Return the *percent* percentile [s], between ranks by linear interpolation as numpy does."""
        if not self.count:
            return math.nan
        rank = (self.count - 1) * percent / 100
        low = int(rank)
        below, above = self._at(low), self._at(min(low + 1, self.count - 1))
        return below + (above - below) * (rank - low)

    def share_within(self, bound_s: float) -> float:
        """Return the share of the times that are at most *bound_s*."""
        return ratio(self._within(bound_s), self.count)


@dataclass(frozen=True, slots=True)
class Sample(Distribution):
    """Times kept one by one, in increasing order [s]."""

    sorted_s: NDArray[np.float64]
    count: int
    mean_s: float
    std_s: float

    @classmethod
    def of(cls, times_s: NDArray[np.float64]) -> Sample:
        """Collect *times_s* [s]; `nan` marks a time that never happened and is left out."""
        known = np.sort(times_s[~np.isnan(times_s)])
        if not len(known):
            return cls(known, 0, math.nan, math.nan)
        return cls(known, len(known), float(known.mean()), float(known.std()))

    def _at(self, rank: int) -> float:
        return float(self.sorted_s[rank])

    def _within(self, bound_s: float) -> int:
        return int(np.searchsorted(self.sorted_s, bound_s, side="right"))


def statistics_ms(latency: Mapping[str, Distribution]) -> dict[str, float]:
    """Return the statistics of each *latency* by name, under the keys of a result such as ``mean_ttft_ms`` [ms]."""
    found: dict[str, float] = {}
    for name, times in latency.items():
        found[f"mean_{name}_ms"] = 1e3 * times.mean_s
        for prefix, percent in PERCENTILES.items():
            found[f"{prefix}_{name}_ms"] = 1e3 * times.percentile(percent)
        found[f"std_{name}_ms"] = 1e3 * times.std_s
    return found
