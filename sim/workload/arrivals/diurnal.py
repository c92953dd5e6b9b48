"""A rate that follows the day."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from sim.errors import ConfigError
from sim.profiles.library import load_workload
from sim.profiles.workload import HOURS_OF_A_DAY, HourlyRate
from sim.workload.arrivals.base import OpenLoop, Rate, poisson_s
from sim.workload.traffic import Floats

__all__ = ["DiurnalArrivals"]

_HOUR_S = 3600.0


class DiurnalArrivals(OpenLoop):
    """A Poisson process whose rate changes by the hour, the same every day.

    Its times are those of a process of rate 1 on a clock that runs as fast as the rate (time rescaling).
    """

    kind: Literal["diurnal"] = "diurnal"
    rate: Rate = Field(description="Mean rate over a day [requests/s].")
    hourly_rate: HourlyRate | None = Field(
        None, description="Rate in each of 24 hours in any unit: only their ratio counts. This or `profile`."
    )
    profile: str | None = Field(None, description="Name of a workload profile that has an `hourly_rate`.")
    start_hour: float = Field(0.0, ge=0, lt=HOURS_OF_A_DAY, description="Hour of the day at which the run begins [h].")

    @model_validator(mode="after")
    def _one_shape(self) -> Self:
        if (self.hourly_rate is None) == (self.profile is None):
            raise ValueError("give either hourly_rate (24 numbers) or profile (the name of a workload)")
        return self

    def times_s(self, count: int, seed: int, beside: Path) -> Floats:
        """Return *count* rising arrival times [s]."""
        shape = np.array(self._shape(beside))
        expected_by_hour = np.cumsum(shape / shape.mean()) * (self.rate * _HOUR_S)  # requests since midnight
        a_day = expected_by_hour[-1]
        before_start = np.interp(self.start_hour, np.arange(HOURS_OF_A_DAY + 1), [0.0, *expected_by_hour])
        expected = before_start + poisson_s(count, 1.0, seed)
        days = math.ceil(expected[-1] / a_day)
        clock_s = np.arange(days * HOURS_OF_A_DAY + 1) * _HOUR_S
        expected_by_clock = np.concatenate([[0.0], *(day * a_day + expected_by_hour for day in range(days))])
        times_s: Floats = np.interp(expected, expected_by_clock, clock_s) - self.start_hour * _HOUR_S
        return times_s

    def _shape(self, beside: Path) -> tuple[float, ...]:
        if self.hourly_rate is not None:
            return self.hourly_rate
        assert self.profile is not None
        shape = load_workload(self.profile, beside).hourly_rate
        if shape is None:
            raise ConfigError(f"the workload {self.profile!r} has no hourly_rate", path="workload.arrivals.profile")
        return shape
