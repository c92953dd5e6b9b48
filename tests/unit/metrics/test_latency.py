import math

import numpy as np
import pytest

from sim.metrics.latency import Sample


def test_percentiles_are_those_of_numpy():
    times_s = np.random.default_rng(1).exponential(size=997)
    sample = Sample.of(times_s)
    for percent in (0, 50, 90, 95, 99, 99.9, 100):
        assert sample.percentile(percent) == pytest.approx(np.percentile(times_s, percent), rel=1e-12)
    assert (sample.mean_s, sample.std_s) == pytest.approx((times_s.mean(), times_s.std()))


def test_times_that_never_happened_are_left_out():
    sample = Sample.of(np.array([3.0, math.nan, 1.0]))
    assert (sample.count, sample.mean_s, sample.percentile(50), sample.share_within(1.0)) == (2, 2.0, 2.0, 0.5)


def test_an_empty_sample_has_no_statistics():
    sample = Sample.of(np.array([math.nan]))
    assert math.isnan(sample.percentile(99))
    assert math.isnan(sample.share_within(1.0))
