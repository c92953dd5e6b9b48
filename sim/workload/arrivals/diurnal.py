"""A rate that follows the day."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from sim.workload.arrivals.base import OpenLoop, Rate, poisson_s
from sim.workload.arrivals.shape import RateShape
from sim.workload.traffic import Floats

__all__ = ["DiurnalArrivals"]


class DiurnalArrivals(RateShape, OpenLoop):
    """A Poisson process whose rate changes by the hour, and by the day of the week and the month if that is written."""

    kind: Literal["diurnal"] = "diurnal"
    rate: Rate = Field(description="Mean rate over a day, or a week, before growth and crowds [requests/s].")

    @model_validator(mode="after")
    def _one_shape(self) -> Self:
        if self.hourly_rate is not None and self.profile is not None:
            raise ValueError("give either hourly_rate (24 numbers) or profile (the name of a workload)")
        if self.hourly_rate is None and self.profile is None and self.daily_rate is None:
            raise ValueError("give hourly_rate (24 numbers), profile (a workload's name) or daily_rate (7 numbers)")
        return self

    def times_s(self, count: int, seed: int, beside: Path) -> Floats:
        """Return *count* rising arrival times [s]."""
        return self.times_of(poisson_s(count, 1.0, seed), self.rate, beside)
