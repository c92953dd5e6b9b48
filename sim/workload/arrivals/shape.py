"""How a rate changes over hours, days and months."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import AfterValidator, Field

from sim.errors import ConfigError
from sim.profiles.library import load_workload
from sim.profiles.workload import HOURS_OF_A_DAY, HourlyRate
from sim.section import Section
from sim.units import Seconds
from sim.workload.traffic import Floats

__all__ = ["Crowd", "RateShape"]

_HOUR_S, _DAY_S, _DAYS_OF_A_MONTH = 3600.0, 86_400.0, 365.25 / 12
_RAMP_STEPS = 32
_MOST_DAYS = 36_525


def _brings_some(rates: tuple[float, ...]) -> tuple[float, ...]:
    if not sum(rates):
        raise ValueError("at least one day needs a rate above 0")
    return rates


DailyRate = Annotated[
    tuple[Annotated[float, Field(ge=0)], ...],
    Field(min_length=7, max_length=7),
    AfterValidator(_brings_some),
]
"""Rate on each of seven days, Monday first."""


class Crowd(Section):
    """A flash crowd: the rate rises to a multiple, stays there, and falls back."""

    at_s: Seconds = Field(ge=0, description="When the rate begins to rise [s].")
    factor: float = Field(gt=0, le=1e4, description="Multiple of the usual rate at the height of it.")
    rise_s: Seconds = Field(0.0, ge=0, description="Time of the rise, a straight line [s].")
    hold_s: Seconds = Field(60.0, ge=0, description="Time at the height [s].")
    fall_s: Seconds = Field(0.0, ge=0, description="Time of the fall, a straight line [s].")

    def edges_s(self) -> Floats:
        """Return times between which the rate is taken as constant [s]: slopes are stairs of 32 steps."""
        top_s, end_s = self.at_s + self.rise_s, self.at_s + self.rise_s + self.hold_s
        rise, fall = (np.linspace(0, length_s, _RAMP_STEPS + 1) for length_s in (self.rise_s, self.fall_s))
        return np.concatenate([self.at_s + rise, [top_s], end_s + fall])

    def multiple(self, time_s: Floats) -> Floats:
        """Return the multiple of the usual rate at each time."""
        top_s, end_s = self.at_s + self.rise_s, self.at_s + self.rise_s + self.hold_s
        corners_s = [self.at_s, top_s, end_s, end_s + self.fall_s]
        height = np.interp(time_s, corners_s, [0.0, 1.0, 1.0, 0.0])
        return 1 + (self.factor - 1) * np.where((time_s >= self.at_s) & (time_s <= corners_s[-1]), height, 0.0)


class RateShape(Section):
    """A rate that follows the day and the week, grows by the month, and has flash crowds.

    It is constant within an hour. The mean over a week without growth and crowds is 1.
    """

    hourly_rate: HourlyRate | None = Field(
        None, description="Rate in each of 24 hours in any unit: only their ratio counts. This or `profile`."
    )
    profile: str | None = Field(None, description="Name of a workload profile that has an `hourly_rate`.")
    start_hour: float = Field(0.0, ge=0, lt=HOURS_OF_A_DAY, description="Hour of the day at which the run begins [h].")
    daily_rate: DailyRate | None = Field(
        None, description="Rate on each of 7 days in any unit, Monday first: only their ratio counts."
    )
    start_day: int = Field(0, ge=0, le=6, description="Day of the week on which the run begins; Monday is 0.")
    monthly_growth: float = Field(
        0.0, gt=-1, le=10, description="By which share the rate grows in a month, a little every day."
    )
    crowds: tuple[Crowd, ...] = Field((), description="Flash crowds.")

    def times_of(self, expected: Floats, rate: float, beside: Path) -> Floats:
        """Return when as many requests are *expected* to have come, at a mean of *rate* [requests/s], as times [s].

        So a Poisson process of rate 1 becomes one that follows the shape (time rescaling).
        """
        hourly, daily = self._hourly(beside), np.array(self.daily_rate or (1.0,) * 7)
        hourly, daily = hourly / hourly.mean(), daily / daily.mean()
        days = 8 + int(1.2 * expected[-1] / (rate * _DAY_S))
        while True:
            edges_s = self._edges_s(days)
            middle_s = (edges_s[:-1] + edges_s[1:]) / 2
            until = np.concatenate([[0.0], np.cumsum(self._level(middle_s, hourly, daily) * rate * np.diff(edges_s))])
            if until[-1] >= expected[-1]:
                times_s: Floats = np.interp(expected, until, edges_s)
                return times_s
            if days > _MOST_DAYS:
                raise ConfigError("the requests would take more than a century to come", path="workload.num_requests")
            days *= 2

    def _edges_s(self, days: int) -> Floats:
        """Return the times at which the rate changes, in that many *days* from the start [s]."""
        hours_s = np.arange(days * HOURS_OF_A_DAY + 1) * _HOUR_S - (self.start_hour % 1) * _HOUR_S
        edges_s = np.unique(np.concatenate([[0.0], hours_s, *(crowd.edges_s() for crowd in self.crowds)]))
        return edges_s[(edges_s >= 0) & (edges_s <= days * _DAY_S)]

    def _level(self, time_s: Floats, hourly: Floats, daily: Floats) -> Floats:
        """Return the rate at each time, over the mean."""
        clock_s = time_s + self.start_hour * _HOUR_S
        day = (clock_s // _DAY_S).astype(np.int64)
        level = hourly[(clock_s // _HOUR_S).astype(np.int64) % HOURS_OF_A_DAY] * daily[(day + self.start_day) % 7]
        level = level * (1 + self.monthly_growth) ** (day / _DAYS_OF_A_MONTH)
        for crowd in self.crowds:
            level = level * crowd.multiple(time_s)
        return level

    def _hourly(self, beside: Path) -> Floats:
        if self.profile is None:
            return np.array(self.hourly_rate or (1.0,) * HOURS_OF_A_DAY)
        shape = load_workload(self.profile, beside).hourly_rate
        if shape is None:
            raise ConfigError(f"the workload {self.profile!r} has no hourly_rate", path="workload.arrivals.profile")
        return np.array(shape)
