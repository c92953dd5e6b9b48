"""Clients with rates, burstiness and lengths of their own."""

from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from sim.workload import Workload, generate

SHORT = {"kind": "fixed", "input_tokens": 10, "output_tokens": 5}
LONG = {"kind": "exponential", "input_tokens": 2000, "output_tokens": 300}


def requests(*clients, count=20_000, seed=3, **more):
    arrivals = {"kind": "clients", "rate": 8, "clients": list(clients)} | more
    return generate(Workload(arrivals=arrivals, num_requests=count), seed, Path()).requests


def times(found, name=None):
    return np.array([request.arrival_s for request in found if name in (None, request.tenant)])


def cv(times_s):
    gaps = np.diff(times_s)
    return gaps.std() / gaps.mean()


def test_each_client_has_its_part_its_bursts_and_its_lengths():
    found = requests({"name": "steady", "weight": 3, "cv": 0.5, "lengths": SHORT}, {"cv": 4, "lengths": LONG})
    assert [request.index for request in found] == list(range(20_000))
    assert (np.diff(times(found)) >= 0).all()
    assert len(found) / times(found)[-1] == pytest.approx(8, rel=0.05)
    assert len(times(found, "steady")) == pytest.approx(15_000, rel=0.05)
    assert cv(times(found, "steady")) == pytest.approx(0.5, rel=0.05)
    assert cv(times(found, "client 1")) == pytest.approx(4, rel=0.1)
    inputs = np.array([request.input_tokens for request in found if request.traffic_class == "client 1"])
    assert inputs.mean() == pytest.approx(2000, rel=0.05)
    assert {request.input_tokens for request in found if request.tenant == "steady"} == {10}


def test_many_poisson_clients_are_a_poisson_process():
    found = requests(*({"lengths": SHORT} for _ in range(50)))
    assert cv(times(found)) == pytest.approx(1, rel=0.05)


def test_one_more_client_changes_nothing_of_the_others():
    first, second = {"name": "a", "cv": 2, "lengths": LONG}, {"name": "b", "lengths": LONG}
    alone = requests(first, count=500, rate=4)
    both = [request for request in requests(first, second, count=800) if request.tenant == "a"]
    shared = min(len(alone), len(both))
    assert times(alone)[:shared] == pytest.approx(times(both)[:shared])
    lengths = [[(each.input_tokens, each.output_tokens) for each in some[:100]] for some in (alone, both)]
    assert lengths[0] == lengths[1]


def test_fewer_requests_are_the_first_ones():
    clients = {"cv": 3, "lengths": SHORT}, {"weight": 0.01, "lengths": SHORT}
    assert times(requests(*clients, count=50)).tolist() == times(requests(*clients, count=200))[:50].tolist()


def test_the_rate_of_all_follows_a_shape():
    hours = [1.0] * 12 + [3.0] * 12
    found = requests({"lengths": SHORT}, rate=0.2, shape={"hourly_rate": hours})
    hour = times(found) // 3600 % 24
    days = times(found)[-1] // 86_400
    full = hour[times(found) < days * 86_400]
    assert (full >= 12).sum() / (full < 12).sum() == pytest.approx(3, rel=0.1)


@pytest.mark.parametrize(
    ("clients", "message"),
    [
        ([], "at least 1 item"),
        ([{"name": "a", "lengths": SHORT}, {"name": "a", "lengths": SHORT}], "two clients are called 'a'"),
        ([{"cv": 0, "lengths": SHORT}], "greater than 0"),
    ],
)
def test_what_makes_no_clients_is_refused(clients, message):
    with pytest.raises(ValidationError, match=message):
        Workload(arrivals={"kind": "clients", "rate": 8, "clients": clients})


@pytest.mark.parametrize("burstiness", [0.5, 3, 10])
def test_a_client_sends_as_much_in_the_first_minute_as_in_any_other(burstiness):
    # A renewal process that has gone on for ever brings rate x time requests, whatever its gaps.
    counts = np.array([
        (times(requests({"cv": burstiness, "lengths": SHORT}, count=2000, seed=seed)) < 60).sum() for seed in range(150)
    ])  # fmt: skip
    assert counts.mean() == pytest.approx(480, abs=3.3 * counts.std() / np.sqrt(len(counts)))


def test_bursts_of_bursty_clients_do_not_all_begin_with_the_run():
    found = times(requests(*({"cv": 10, "lengths": SHORT} for _ in range(20)), count=1000))
    assert (found == found[0]).sum() < 300
    assert found[0] > 0
