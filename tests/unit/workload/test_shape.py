"""Rates that follow hours, days, months and crowds, against their integrals."""

from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from sim.errors import ConfigError
from sim.workload.arrivals.diurnal import DiurnalArrivals
from sim.workload.arrivals.flash_crowd import FlashCrowdArrivals
from sim.workload.arrivals.sessions import SessionArrivals
from sim.workload.arrivals.shape import Crowd, RateShape

HERE = Path()
DAY_S = 86_400.0


def expected_by(shape, time_s, rate=1.0):
    """How many requests are expected by *time_s*, read back from where the n-th comes."""
    counts = np.arange(1.0, 1e6, 25.0)
    return float(np.interp(time_s, shape.times_of(counts, rate, HERE), counts))


def test_the_week_has_its_days():
    shape = RateShape(daily_rate=(1, 1, 1, 1, 1, 0.5, 0), start_day=4, start_hour=12)
    mean = 5.5 / 7
    assert expected_by(shape, 0.5 * DAY_S) == pytest.approx(0.5 * DAY_S / mean, rel=1e-3)  # the rest of Friday
    assert expected_by(shape, 1.5 * DAY_S) == pytest.approx(1.0 * DAY_S / mean, rel=1e-3)  # Saturday, half
    assert expected_by(shape, 2.5 * DAY_S) == pytest.approx(1.0 * DAY_S / mean, rel=1e-3)  # Sunday, nothing
    assert expected_by(shape, 7.0 * DAY_S) == pytest.approx(7.0 * DAY_S, rel=1e-3)


def test_a_rate_grows_by_the_month():
    shape = RateShape(monthly_growth=0.2)
    month = 365.25 / 12
    exact = sum(1.2 ** (day / month) for day in range(60)) * DAY_S
    assert expected_by(shape, 60 * DAY_S, rate=0.1) == pytest.approx(0.1 * exact, rel=1e-3)


def test_a_crowd_comes_and_goes():
    """100 s at 1, 10 s up to 5, 20 s at 5, 40 s down: 30 + 100 + 120 requests in the crowd."""
    shape = RateShape(crowds=(Crowd(at_s=100, factor=5, rise_s=10, hold_s=20, fall_s=40),))
    times_s = shape.times_of(np.array([100.0, 130.0, 230.0, 350.0, 360.0]), 1.0, HERE)
    assert times_s == pytest.approx([100, 110, 130, 170, 180])


def test_a_crowd_is_the_middle_of_the_rise_at_half_its_height():
    crowd = Crowd(at_s=100, factor=5, rise_s=10, hold_s=20, fall_s=40)
    assert crowd.multiple(np.array([99.0, 105.0, 120.0, 150.0, 171.0])) == pytest.approx([1, 3, 5, 3, 1])


def test_arrivals_of_a_flash_crowd_are_a_poisson_process():
    arrivals = FlashCrowdArrivals(rate=10, at_s=100, factor=4, hold_s=100)
    counts = [np.histogram(arrivals.times_s(6500, seed, HERE), [0, 100, 200, 300])[0] for seed in range(30)]
    assert np.mean(counts, axis=0) == pytest.approx([1000, 4000, 1000], rel=0.02)
    assert np.var(counts, axis=0) == pytest.approx([1000, 4000, 1000], rel=0.8)


def test_sessions_follow_a_shape():
    shape = RateShape(hourly_rate=(1.0,) * 12 + (3.0,) * 12)
    traffic = SessionArrivals(rate=0.05, turns=1, shape=shape).replay(4000, 1, HERE)
    starts_s = np.array([request.arrival_s for request in traffic.requests])
    morning, evening = np.histogram(starts_s % DAY_S, [0, DAY_S / 2, DAY_S])[0]
    assert evening / morning == pytest.approx(3, rel=0.15)


def test_a_shape_that_brings_nothing_is_refused():
    with pytest.raises(ValidationError, match="at least one day"):
        RateShape(daily_rate=(0,) * 7)
    with pytest.raises(ConfigError, match="century"):
        RateShape(monthly_growth=-0.5).times_of(np.array([1e9]), 1.0, HERE)


def test_a_day_is_as_it_was():
    diurnal = DiurnalArrivals(rate=2.0, hourly_rate=tuple(range(24)), start_hour=6.5)
    times_s = diurnal.times_s(50_000, 1, HERE)
    by_hour = np.histogram(times_s, 3600 * (np.arange(7) - 0.5 * (np.arange(7) > 0)))[0]
    exact = 2.0 * 3600 / 11.5 * np.array([3, 7, 8, 9, 10, 11])
    assert by_hour == pytest.approx(exact, rel=0.06)
