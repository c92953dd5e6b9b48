"""By the load to be expected when a replica that is asked for now is ready."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from sim.autoscaler.base import Autoscaler, Snapshot, Window
from sim.units import Seconds

__all__ = ["Forecast"]


class Forecast(Autoscaler):
    """Requests per second some time ahead, over what a replica can take.

    *trend* goes on in a straight line through the rates of the last two windows. *season* takes the rate of now times
    that by which it changed from this time to the next in the period before; before there is such a period, the trend.
    """

    kind: Literal["forecast"] = "forecast"
    target: float = Field(gt=0, description="Requests that each replica should get in a second.")
    ahead_s: Seconds = Field(300.0, ge=0, description="How far ahead: at least the time of a cold start [s].")
    method: Literal["season", "trend"] = Field("season", description="How the future follows from the past.")
    period_s: Seconds = Field(86_400.0, gt=0, description="After which the load repeats [s].")
    window_s: Window = 300.0

    def wanted(self, seen: Sequence[Snapshot], current: int) -> int:
        """Return how many replicas the expected rate takes."""
        return self._of_total(max(self._expected(seen), 0.0), self.target, current)

    def _expected(self, seen: Sequence[Snapshot]) -> float:
        """Return the expected rate [requests/s]."""
        now_s = seen[-1].at_s
        rate = self._rate(seen, now_s)
        before_s = now_s - self.period_s
        if self.method == "season" and before_s >= self.window_s:
            then = self._rate(seen, before_s)
            return rate * self._rate(seen, before_s + self.ahead_s) / then if then else rate
        earlier_s = now_s - self.window_s
        if earlier_s < self.window_s:
            return rate
        return rate + (rate - self._rate(seen, earlier_s)) / self.window_s * self.ahead_s

    def _rate(self, seen: Sequence[Snapshot], at_s: float) -> float:
        """Return the rate over the window that ended at *at_s* [requests/s]."""
        last, first = _at(seen, at_s), _at(seen, at_s - self.window_s)
        time_s = last.at_s - first.at_s
        return (last.arrivals - first.arrivals) / time_s if time_s else 0.0


def _at(seen: Sequence[Snapshot], at_s: float) -> Snapshot:
    """Return the first snapshot that is not before *at_s*, or the last."""
    return seen[min(bisect_left(seen, at_s, key=lambda snapshot: snapshot.at_s), len(seen) - 1)]
