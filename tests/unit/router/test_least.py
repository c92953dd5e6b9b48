"""The index of the replica with the least of something, against a scan of all."""

from __future__ import annotations

import numpy as np
import pytest
from fleets import fleet_of
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.request import Request
from sim.router.gauge import Gauge
from sim.router.least import Least
from sim.router.least_loaded import LeastLoaded
from sim.router.power_of_two import PowerOfTwo
from sim.router.queue_depth import QueueDepth
from sim.router.random import Random
from sim.router.round_robin import RoundRobin

REQUEST = Request(0, 10, 10)

steps = st.lists(
    st.one_of(
        st.tuples(st.just("load"), st.integers(0, 7), st.integers(0, 5)),
        st.tuples(st.just("grow"), st.integers(0, 7), st.integers(1, 3)),
        st.tuples(st.just("leave"), st.integers(0, 7), st.just(0)),
        st.tuples(st.just("join"), st.integers(0, 7), st.just(0)),
    ),
    max_size=60,
)


@settings(derandomize=True, max_examples=300, deadline=None)
@given(steps, st.booleans())
def test_it_finds_what_a_scan_finds(taken, odd_only):
    fleet, replicas = fleet_of(*[0] * 8)
    among = (lambda index: index % 2 == 1) if odd_only else None
    least = Least(Gauge(fleet, lambda replica: replica.outstanding), among)
    for replica in replicas:
        fleet.join(replica)
    for what, index, amount in taken:
        ready = index in fleet.loads
        if what == "leave" and ready:
            fleet.leave(index)
        elif what == "join" and not ready:
            fleet.join(replicas[index])
        elif what == "grow":
            replicas[index].outstanding += amount  # nobody tells of what grows
        elif what == "load":
            replicas[index].outstanding = amount
            fleet.changed(index)
        counted = [place for place in fleet.ready if among is None or among(place)]
        assert bool(least) == bool(counted)
        if counted:
            assert least.find() == min(counted, key=lambda place: (replicas[place].outstanding, place))


def test_its_heap_stays_small():
    fleet, replicas = fleet_of(*[3] * 5)
    least = Least(Gauge(fleet, lambda replica: replica.outstanding))
    for replica in replicas:
        fleet.join(replica)
    for turn in range(10_000):
        replica = replicas[least.find()]
        replica.outstanding += 1 + turn % 3
        done = replicas[turn % 5]
        done.outstanding = max(done.outstanding - 2, 0)
        fleet.changed(done.index)
    assert len(least._heap) <= 64 + 4 * 5


def test_reports_hide_what_happens_between_them():
    fleet, replicas = fleet_of(2, 1)
    choose = LeastLoaded(staleness_s=1.0).begin(fleet)
    for replica in replicas:
        fleet.join(replica)
    ((interval_s, report),) = fleet.reports
    assert interval_s == 1.0
    replicas[1].outstanding = 7
    fleet.changed(1)
    assert [choose(REQUEST), choose(REQUEST)] == [1, 1], "the herd follows the last report"
    report()
    assert choose(REQUEST) == 0


def test_queue_depth_counts_what_it_sent_since_the_last_report():
    fleet, replicas = fleet_of(0, 0)
    choose = QueueDepth(staleness_s=1.0).begin(fleet)
    replicas[1].running = 6
    for replica in replicas:
        fleet.join(replica)
    assert [choose(REQUEST) for _ in range(4)] == [0, 0, 1, 0]  # 0, 4, 6 against 8, 8 against 10


def test_queue_depth_weighs_who_waits_four_times():
    fleet, replicas = fleet_of(0, 0)
    choose = QueueDepth().begin(fleet)
    replicas[0].waiting, replicas[1].running = 1, 3
    for replica in replicas:
        fleet.join(replica)
    assert choose(REQUEST) == 1
    replicas[1].running = 5
    fleet.changed(1)
    assert choose(REQUEST) == 0


def test_round_robin_goes_on_when_replicas_come_and_go():
    fleet, replicas = fleet_of(0, 0, 0)
    choose = RoundRobin().begin(fleet)
    for replica in replicas:
        fleet.join(replica)
    assert [choose(REQUEST) for _ in range(4)] == [0, 1, 2, 0]
    fleet.leave(1)
    assert {choose(REQUEST) for _ in range(4)} == {0, 2}
    fleet.join(replicas[1])
    assert {choose(REQUEST) for _ in range(3)} == {0, 1, 2}


@pytest.mark.parametrize(("router", "shares"), [(Random(), (1 / 3, 1 / 3, 1 / 3)), (PowerOfTwo(), (2 / 3, 1 / 3, 0))])
def test_draws_are_as_likely_as_they_should_be(router, shares):
    # Of two of the replicas with 0, 1 and 2 requests the first is in two pairs of three, and wins both.
    fleet, replicas = fleet_of(0, 1, 2)
    choose = router.begin(fleet)
    for replica in replicas:
        fleet.join(replica)
    counts = np.bincount([choose(REQUEST) for _ in range(9000)], minlength=3)
    assert counts / 9000 == pytest.approx(shares, abs=0.02)


def test_two_of_one_replica_is_that_replica():
    fleet, (replica,) = fleet_of(5)
    choose = PowerOfTwo().begin(fleet)
    fleet.join(replica)
    assert choose(REQUEST) == 0


@pytest.mark.parametrize("staleness_s", [1e-9, -1.0])
def test_reports_that_never_end_are_refused(staleness_s):
    with pytest.raises(ValueError, match="staleness_s"):
        LeastLoaded(staleness_s=staleness_s)
