"""Waiting times behind a router against queueing theory: replicas with room for one request are single servers.

Their truths are in `tests/support/queues.py`. ``python benchmarks/queueing.py`` has more servers, loads and requests.
"""

from __future__ import annotations

import numpy as np
import pytest
import queues
from queues import interval, served, tail

from sim.router.least_loaded import LeastLoaded
from sim.router.power_of_two import PowerOfTwo
from sim.router.random import Random
from sim.router.round_robin import RoundRobin

SPLIT = ((2, 0.8, 1500), (8, 0.7, 1500), (64, 0.5, 4000))  # servers, load of each, requests
SHARED = ((2, 0.8, 1500), (8, 0.8, 1500), (64, 0.8, 4000))  # who take turns or look at each other hardly wait at 0.5
REPLICATIONS = 4


def wait_s(router, servers, load, requests, *, exponential) -> tuple[float, float]:
    """Return the interval of the mean wait; the first fifth, of queues that began empty, is left out."""
    runs = (served(router, servers, load, requests, seed, exponential=exponential) for seed in range(REPLICATIONS))
    return interval([run.queue_s[requests // 5 :].mean() for run in runs])


@pytest.mark.parametrize(("servers", "load", "requests"), SPLIT)
@pytest.mark.parametrize(("exponential", "truth"), [(True, queues.m_m_1), (False, queues.m_d_1)], ids=["m", "d"])
def test_random_splits_a_poisson_process_into_many(servers, load, requests, exponential, truth):
    low_s, high_s = wait_s(Random(), servers, load, requests, exponential=exponential)
    assert low_s <= truth(load) <= high_s


@pytest.mark.parametrize(("servers", "load", "requests"), SHARED)
def test_round_robin_with_equal_services_is_m_d_c(servers, load, requests):
    low_s, high_s = wait_s(RoundRobin(), servers, load, requests, exponential=False)
    assert low_s <= queues.m_d_c(load, servers) <= high_s


@pytest.mark.parametrize(("servers", "load", "requests"), SHARED)
def test_round_robin_with_exponential_services_is_erlang_m_1(servers, load, requests):
    low_s, high_s = wait_s(RoundRobin(), servers, load, requests, exponential=True)
    assert low_s <= queues.round_robin_m(load, servers) <= high_s


def test_join_the_shorter_of_two_queues():
    low_s, high_s = wait_s(LeastLoaded(), 2, 0.8, 2000, exponential=True)
    assert low_s <= queues.shortest_of_two(0.8) <= high_s


def test_the_shortest_queue_is_between_one_queue_for_all_and_taking_turns():
    low_s, high_s = wait_s(LeastLoaded(), 8, 0.8, 1500, exponential=True)
    assert queues.m_m_c(0.8, 8) < high_s
    assert high_s < queues.round_robin_m(0.8, 8)
    assert low_s > 0


def test_the_tail_of_two_choices_is_doubly_exponential():
    """Of 200 servers with load 0.9: 0.9 have 1, 0.9^3 have 2, 0.9^7 have 3, 0.9^15 have 4, 0.9^31 have 5 requests."""
    servers, load = 200, 0.9
    tails = [
        tail(served(PowerOfTwo(), servers, load, 8000, seed, exponential=True), servers, 20.0) for seed in range(3)
    ]
    for count in range(1, 6):
        low, high = interval([shares[count - 1] for shares in tails])
        slack = 1.0 / servers  # the law is of infinitely many servers
        assert low - slack <= queues.shortest_of_d(load, count) <= high + slack, count
    assert np.mean(tails, axis=0)[6] < 1e-3 < load**7, "with one choice 48 % of the servers had 7"


@pytest.mark.parametrize("load", [0.3, 0.8, 0.95])
def test_the_truths_agree_where_there_is_one_server_or_a_known_formula(load):
    assert queues.m_m_c(load, 1) == pytest.approx(queues.m_m_1(load))
    assert queues.round_robin_m(load, 1) == pytest.approx(queues.m_m_1(load))
    assert queues.m_d_c(load, 1) == pytest.approx(queues.m_d_1(load), rel=1e-6)
    assert queues.m_m_c(load, 2) == pytest.approx(load**2 / (1 - load**2))
