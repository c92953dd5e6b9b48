import math

import numpy as np
import pytest
from handmade import strides_of, two_answers

from sim.metrics.gaps import gaps_between, gaps_of, unexplained_gap_share


def listed(strides, odd_gaps=()):
    """List every gap: the slow way."""
    gaps = [gap_s for gap_s, count in odd_gaps for _ in range(count)]
    for row in range(len(strides.start_s)):
        for j in range(strides.iterations[row]):
            sequences = strides.decodes[row] if j else strides.steady_gaps[row]
            gaps += [strides.first_s[row] + j * strides.growth_s[row]] * int(sequences)
    return np.array(gaps)


def random_strides(rng, growth_scale, count=300):
    rows = []
    for _ in range(count):
        first_s, iterations, decodes = rng.uniform(0.005, 0.05), int(rng.integers(1, 200)), int(rng.integers(0, 9))
        growth_s = rng.uniform(-0.2, 1.0) * growth_scale
        growth_s = max(growth_s, -first_s / iterations)
        cells = {"first_s": first_s, "growth_s": growth_s, "iterations": iterations, "decodes": decodes}
        rows.append(cells | {"steady_gaps": int(rng.integers(0, decodes + 1))})
    return rows


@pytest.mark.parametrize("growth_scale", [0.0, 1e-7, 1e-5, 1e-3, 1.0])
def test_gaps_agree_with_listing_every_token(growth_scale):
    rng = np.random.default_rng(7)
    odd_gaps = [(0.3, 2), (1.7, 1)]
    strides = strides_of(*random_strides(rng, growth_scale), odd_gaps=odd_gaps)
    gaps, every = gaps_of(strides), listed(strides, odd_gaps)
    assert gaps.count == len(every)
    np.testing.assert_allclose([gaps.mean_s, gaps.std_s], [every.mean(), every.std()], rtol=1e-9)
    for percent in (1, 50, 90, 95, 99, 99.9):
        assert gaps.percentile(percent) == pytest.approx(np.percentile(every, percent), rel=1.1e-3)
    for bound_s in (0.01, 0.02, 0.2):
        near = np.mean((every > bound_s * 0.999) & (every < bound_s * 1.001))
        assert gaps.share_within(bound_s) == pytest.approx(np.mean(every <= bound_s), abs=near + 1e-12)


def test_equal_gaps_are_exact():
    gaps = gaps_of(strides_of({"first_s": 0.0137, "iterations": 1000, "decodes": 64}))
    assert [gaps.percentile(percent) for percent in (50, 99)] == pytest.approx([0.0137] * 2, rel=1e-12)
    assert gaps.count == 64_000
    assert gaps.std_s == pytest.approx(0.0, abs=1e-12)


def test_gaps_of_no_length_are_counted():
    gaps = gaps_of(strides_of({"first_s": 0.0, "iterations": 3, "decodes": 1}, {"first_s": 1.0, "decodes": 1}))
    assert (gaps.count, gaps.mean_s, gaps.percentile(50)) == (4, 0.25, 0.0)


def test_no_gaps_have_no_statistics():
    gaps = gaps_of(strides_of({"first_s": 1.0, "chunks": 1}))
    assert gaps.count == 0
    assert all(math.isnan(value) for value in (gaps.mean_s, gaps.std_s, gaps.percentile(50), gaps.share_within(1.0)))


def test_gaps_between_takes_strides_by_their_start():
    strides = strides_of(
        {"start_s": 0.0, "first_s": 0.5, "iterations": 4, "decodes": 1},
        {"start_s": 2.0, "first_s": 0.25, "iterations": 4, "decodes": 1},
        odd_gaps=[(9.0, 1)],
    )
    assert gaps_between(strides, 0.0, 2.0).mean_s == 0.5
    assert gaps_between(strides, 2.0, 3.0).mean_s == 0.25


def test_gaps_add_up_to_the_time_between_first_and_last_tokens():
    requests, strides = two_answers()
    assert gaps_of(strides).mean_s * 5 == (2.25 - 1.5) + (2.625 - 2.0)
    assert unexplained_gap_share(requests, gaps_of(strides)) == 0.0
    without_last = strides.where(np.array([True, True, True, False]))
    assert unexplained_gap_share(requests, gaps_of(without_last)) == pytest.approx(0.375 / 1.375)
