import numpy as np
import pytest
from handmade import completed, requests_of, strides_of, two_answers

from sim.metrics.emissions import peak_concurrency, peak_tokens_per_s
from sim.request import Status


def listed_peak(requests, strides):
    """List every token, as vLLM's benchmark does, and count by second since the first arrival."""
    times = list(requests.first_token_s)
    for row in range(len(strides.start_s)):
        end_s = strides.start_s[row]
        for j in range(strides.iterations[row]):
            end_s += strides.first_s[row] + j * strides.growth_s[row]
            times += [end_s] * int(strides.decodes[row])
    return np.bincount(np.floor(np.array(times) - requests.arrival_s.min()).astype(int)).max()


@pytest.mark.parametrize("first_s", [0.0009, 0.017, 0.4, 3.7])
@pytest.mark.parametrize("growth_s", [0.0, 1.1e-6, 3e-3])
def test_peak_agrees_with_listing_every_token(first_s, growth_s):
    rng = np.random.default_rng(3)
    rows, start_s = [], 0.25
    for _ in range(60):
        cells = {"first_s": first_s * rng.uniform(0.5, 2), "growth_s": growth_s * rng.uniform(0, 2)}
        cells |= {"iterations": int(rng.integers(1, 400)), "decodes": int(rng.integers(0, 30)), "start_s": start_s}
        rows.append(cells)
        start_s += strides_of(cells).duration_s[0] + rng.choice([0.0, 0.3])
    arrival_s = np.append(0.0, rng.uniform(0.0, start_s, 199))
    requests = completed(arrival_s, 0.0, rng.uniform(0, 5, 200), rng.uniform(5, 9, 200))
    strides = strides_of(*rows)
    assert peak_tokens_per_s(requests, strides) == listed_peak(requests, strides)


def test_iterations_that_end_on_a_full_second_belong_to_the_next():
    requests = requests_of((0.0, 0.0, 0.5, 2.0, 7))
    strides = strides_of({"start_s": 0.5, "first_s": 0.25, "iterations": 6, "decodes": 1})
    # tokens at 0.5 0.75 | 1.0 1.25 1.5 1.75 | 2.0
    assert peak_tokens_per_s(requests, strides) == 4


def test_a_stride_over_years_costs_no_more_than_its_iterations():
    requests = requests_of((0.0, 0.0, 1e9, 5e9, 5))
    strides = strides_of({"start_s": 1e9, "first_s": 1e9, "iterations": 4, "decodes": 3})
    assert peak_tokens_per_s(requests, strides) == 3


def test_nothing_completed_has_no_peak():
    requests = requests_of((0.0, 0.0, 1.0, 2.0, 3, {"status": Status.REJECTED}))
    assert peak_tokens_per_s(requests, strides_of()) == 0.0
    assert peak_concurrency(requests) == 0


def test_one_that_ends_when_another_arrives_does_not_overlap_it():
    back_to_back = requests_of((0.0, 0.0, 0.5, 1.0, 2), (1.0, 1.0, 1.5, 2.0, 2))
    assert peak_concurrency(back_to_back) == 1
    assert peak_concurrency(two_answers()[0]) == 2
