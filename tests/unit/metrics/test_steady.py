import heapq

import numpy as np
import pytest
from handmade import completed

from sim.metrics.steady import judge_steadiness, mser5


def test_mser5_is_its_definition():
    rng = np.random.default_rng(5)
    for length in (30, 103, 500):
        series = rng.normal(size=length) + np.linspace(2, 0, length)
        means = series[: length // 5 * 5].reshape(-1, 5).mean(axis=1)
        errors = [np.sum((means[d:] - means[d:].mean()) ** 2) / len(means[d:]) ** 2 for d in range(len(means) - 4)]
        assert mser5(series) == 5 * int(np.argmin(errors))
        assert mser5(series, most=0.5) == 5 * int(np.argmin(errors[: len(means) // 2 + 1]))


def test_mser5_cuts_a_transient_of_300():
    rng = np.random.default_rng(0)
    ramp = np.minimum(np.arange(3000) / 300, 1.0)
    cuts = [mser5(50 * ramp + rng.normal(0, 5, 3000)) for _ in range(20)]
    assert 200 <= min(cuts) <= max(cuts) <= 450


def test_a_short_series_is_not_cut():
    assert mser5(np.arange(29.0)) == 0


def queue(load, servers, count, seed=0):
    """Serve Poisson arrivals by *servers*, each taking exponential times of mean 1 s, in order of arrival."""
    rng = np.random.default_rng(seed)
    arrival_s = np.cumsum(rng.exponential(1 / (load * servers), count))
    service_s, free_s, start_s = rng.exponential(size=count), [0.0] * servers, np.empty(count)
    for index in range(count):
        start_s[index] = max(arrival_s[index], heapq.heappop(free_s))
        heapq.heappush(free_s, start_s[index] + service_s[index])
    queue_s = start_s - arrival_s
    return completed(arrival_s, queue_s, queue_s + 0.01, queue_s + service_s)


@pytest.mark.parametrize(
    ("load", "servers", "count", "verdict"),
    [
        (0.3, 1, 2000, "steady"),
        (0.7, 64, 2000, "steady"),
        (0.9, 64, 10000, "steady"),
        (1.2, 64, 2000, "overloaded"),
        (2.0, 1, 200, "overloaded"),
        (0.9, 64, 200, "too short"),
        (2.0, 256, 200, "too short"),  # all of them fit in at once: no queue, but no end of the rise either
    ],
)
def test_queues_are_judged_as_theory_says(load, servers, count, verdict):
    verdicts = [judge_steadiness(queue(load, servers, count, seed)).verdict for seed in range(5)]
    assert verdicts.count(verdict) >= 4


def test_the_warm_up_ends_where_a_batch_has_filled():
    steadiness = judge_steadiness(queue(0.7, 64, 5000))
    assert 0 < steadiness.warm_up_requests < 500
    assert 0.5 < steadiness.warm_up_s < 10.0  # the mean service takes 1 s


def test_an_overload_is_told_with_both_rates():
    statement = judge_steadiness(queue(2.0, 1, 1000)).statement
    offered, served = (float(word) for word in statement.split() if word.replace(".", "").isdigit())
    assert (offered, served) == (pytest.approx(2.0, rel=0.1), pytest.approx(1.0, rel=0.1))


def test_an_overload_in_a_short_run_is_told_with_what_the_whole_run_served():
    arrival_s = np.linspace(0.0, 10.0, 1000)  # most answers come after the last arrival
    statement = judge_steadiness(completed(arrival_s, 9 * arrival_s, 1.0, 1.0 + 9 * arrival_s)).statement
    assert "100 requests/s arrive and 9.9 are served" in statement


def test_all_at_once_is_offline():
    at_once = completed(np.zeros(100), np.arange(100.0), np.arange(100.0) + 1, np.arange(100.0) + 2)
    assert judge_steadiness(at_once).verdict == "offline"


def test_a_closed_loop_is_steady_after_its_first_wave():
    rng = np.random.default_rng(4)
    service_s = rng.uniform(1.0, 3.0, (50, 16))  # sixteen clients, fifty turns each
    end_s = np.cumsum(service_s, axis=0)
    order = np.argsort((end_s - service_s).ravel(), kind="stable")
    arrival_s, e2e_s = (end_s - service_s).ravel()[order], service_s.ravel()[order]
    steadiness = judge_steadiness(completed(arrival_s, 0.0, 0.1, e2e_s))
    assert (steadiness.verdict, steadiness.warm_up_requests) == ("steady", 15)  # of the first wave finds 0 ... 15


def test_a_closed_loop_of_few_turns_is_too_short():
    arrival_s = np.repeat(np.arange(3) * 2.0, 32)
    steadiness = judge_steadiness(completed(arrival_s, 0.0, 0.1, 2.0))
    assert steadiness.verdict == "too short"
    assert "takes 240 or more" in steadiness.statement  # five times 24 arrivals/s of 2 s


def test_fewer_than_fifty_are_too_short():
    assert judge_steadiness(queue(0.3, 1, 49)).verdict == "too short"
    assert judge_steadiness(queue(0.3, 1, 1)).verdict == "too short"
