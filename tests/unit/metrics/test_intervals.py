import math

import numpy as np
import pytest
from handmade import completed, strides_of

from sim.metrics.gaps import gaps_of
from sim.metrics.intervals import latency_intervals
from sim.metrics.latency import Sample

EMPTY = strides_of()


def intervals_of(requests, strides=EMPTY, from_s=0.0):
    latency = {
        "ttft": Sample.of(requests.ttft_s),
        "tpot": Sample.of(requests.tpot_s),
        "itl": gaps_of(strides),
        "e2el": Sample.of(requests.e2e_s),
    }
    return latency_intervals(requests, strides, latency, from_s)


def test_ten_batches_and_students_t():
    ttft_s = np.repeat(np.arange(1.0, 11.0), 2)  # batch means 1 ... 10: standard deviation 3.02765
    requests = completed(np.arange(20.0), 0.0, ttft_s, 20.0)
    half_ms = 1e3 * 1.833113 * 3.027650 / math.sqrt(10)  # t of 9 degrees of freedom: NIST table 1.3.6.7.2
    assert intervals_of(requests)["mean_ttft_ms"] == pytest.approx((5500 - half_ms, 5500 + half_ms), rel=1e-4)


def test_they_cover_the_truth_nine_times_in_ten():
    rng = np.random.default_rng(11)
    truth_ms = {"mean_ttft_ms": 1e3, "p90_ttft_ms": 1e3 * math.log(10), "p99_ttft_ms": 1e3 * math.log(100)}
    inside = dict.fromkeys(truth_ms, 0)
    for _ in range(300):
        intervals = intervals_of(completed(np.arange(2000.0), 0.0, rng.exponential(size=2000), 9.0))
        for key, value in truth_ms.items():
            inside[key] += intervals[key][0] <= value <= intervals[key][1]
    assert all(255 <= count <= 285 for count in inside.values()), inside  # 270 +- 3 standard deviations


def test_correlated_latencies_widen_them():
    rng = np.random.default_rng(12)
    noise, smooth = rng.exponential(size=4000), np.empty(4000)
    level = 1.0
    for index, value in enumerate(noise):
        level += 0.02 * (value - level)
        smooth[index] = level
    independent = rng.permutation(smooth)
    widths = [
        np.diff(intervals_of(completed(np.arange(4000.0), 0.0, ttft_s, 9.0))["mean_ttft_ms"])[0]
        for ttft_s in (smooth, independent)
    ]
    assert widths[0] > 4 * widths[1]


def test_the_warm_up_is_left_out():
    ttft_s = np.concatenate([np.full(1000, 50.0), np.full(1000, 1.0)])
    requests = completed(np.arange(2000.0), 0.0, ttft_s, 60.0)
    low, high = intervals_of(requests, from_s=1000.0)["mean_ttft_ms"]
    assert high - low == 0.0


def test_far_percentiles_need_enough_requests():
    rng = np.random.default_rng(13)
    few = intervals_of(completed(np.arange(500.0), 0.0, rng.exponential(size=500), 9.0))
    assert "p95_ttft_ms" in few
    assert "p99_ttft_ms" not in few
    assert "mean_itl_ms" not in few  # there are no gaps


def test_gaps_are_batched_in_time():
    rng = np.random.default_rng(14)
    rows = [
        {"start_s": float(second), "first_s": gap_s, "iterations": 20, "decodes": 4}
        for second, gap_s in enumerate(rng.uniform(0.02, 0.05, 1000))
    ]
    requests = completed(np.arange(1000.0), 0.0, rng.exponential(size=1000), 9.0)
    low, high = intervals_of(requests, strides_of(*rows))["mean_itl_ms"]
    assert low < 35.0 < high
    assert high - low == pytest.approx(2 * 1.833 * 30 / math.sqrt(12 * 1000), rel=0.5)  # as of 1,000 uniform draws
