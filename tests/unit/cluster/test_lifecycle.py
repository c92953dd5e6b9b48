"""Replicas that are lost, drained and replaced, by hand: every iteration takes a second."""

import math

import pytest
from serving import Ask, Case

from sim.cluster import Cluster, Pool
from sim.cluster.lifecycle import Lifecycle
from sim.cost import Affine
from sim.failures import Drain, Failures, Loss, RollingUpdate, RouterLoss, Slow
from sim.metrics.instances import InstanceState
from sim.router.least_loaded import LeastLoaded
from sim.scheduler.chunked_prefill import ChunkedPrefill
from sim.workload.traffic import Traffic

ANSWER = Ask(0.0, 4, 5)
"""Alone its tokens come at 1, 2, 3, 4 and 5 s."""
DOWN, DRAINING, READY, STARTING = (InstanceState[name] for name in ("DOWN", "DRAINING", "READY", "STARTING"))


def play(*events, asks=(ANSWER,), replicas=1, most=0, cold_start_s=2.0, grace_s=math.inf, timeout_s=300.0, **failures):
    case = Case(ChunkedPrefill(), 100, 4, asks)
    requests = case.requests()
    pool = Pool(
        case.engine(cost=Affine(base_s=1.0).build()), replicas, most=most, cold_start_s=cold_start_s, grace_s=grace_s
    )
    cluster = Cluster(
        [pool],
        LeastLoaded(),
        Traffic(requests),
        failures=Failures(events=events, **failures),
        gateway_timeout_s=timeout_s,
    )
    cluster.run()
    rows = cluster.lives()
    return requests, list(
        zip(rows.replica.tolist(), rows.from_s.tolist(), rows.to_s.tolist(), rows.state.tolist(), strict=True)
    )


def lost(at_s, for_s=10.0, which=0):
    return Loss(at_s=at_s, what="replica", which=which, for_s=for_s)


def test_a_retry_begins_at_once_elsewhere_and_its_first_token_is_the_new_one():
    (request,), _ = play(lost(3.5), replicas=2, in_flight="retry")
    assert (request.replica, request.first_token_s, request.last_token_s) == (1, 4.5, 8.5)
    assert (request.retries, request.lost_tokens, request.discarded_s) == (1, 6, 2.0)


def test_a_resumed_answer_keeps_its_tokens():
    (request,), _ = play(lost(3.5), replicas=2, in_flight="resume")
    assert (request.replica, request.first_token_s, request.last_token_s) == (1, 1.0, 5.5)
    assert (request.emitted_tokens, request.lost_tokens, request.discarded_s) == (5, 6, 0.0)


def test_a_request_may_fail_with_its_replica():
    (request,), _ = play(lost(3.5), replicas=2, in_flight="fail")
    assert (request.status.name, request.reason, request.emitted_tokens) == ("FAILED", "its replica was lost", 3)


def test_the_iteration_that_would_end_at_the_loss_is_lost():
    (request,), _ = play(lost(3.0), replicas=2, in_flight="resume")
    assert (request.lost_tokens, request.last_token_s) == (5, 6.0)


def test_without_another_replica_the_repair_and_the_start_are_waited_for():
    (request,), lives = play(lost(3.5, for_s=1.0), in_flight="resume")
    assert (request.first_token_s, request.last_token_s) == (1.0, 8.5)
    assert lives == [(0, 0.0, 3.5, READY), (0, 3.5, 4.5, DOWN), (0, 4.5, 6.5, STARTING), (0, 6.5, 8.5, READY)]


def test_nobody_waits_for_ever():
    """The first has begun and fails, the second was never served and is refused."""
    asks = (ANSWER, Ask(4.0, 4, 1))
    requests, _ = play(lost(3.5, for_s=1000.0), asks=asks, timeout_s=20.0)
    assert [request.status.name for request in requests] == ["FAILED", "REJECTED"]
    assert {request.reason for request in requests} == {"no replica was ready for 20 s"}


def test_who_is_lost_too_often_fails():
    (request,), _ = play(lost(0.5), lost(2.0, which=1), replicas=3, max_retries=1)
    assert (request.status.name, request.reason) == ("FAILED", "its replica was lost 2 times")


def test_a_draining_replica_answers_what_it_has_and_is_replaced():
    asks = (ANSWER, Ask(2.0, 4, 1))
    requests, lives = play(Drain(at_s=1.5, what="drain"), asks=asks, most=2)
    assert [request.last_token_s for request in requests] == [5.0, 4.5]
    assert [request.replica for request in requests] == [0, 1]
    assert lives == [
        (0, 0.0, 1.5, READY),
        (1, 1.5, 3.5, STARTING),
        (0, 1.5, 5.0, DRAINING),
        (1, 3.5, 5.0, READY),
    ]


def test_who_drains_for_longer_than_its_grace_is_lost():
    (request,), _ = play(Drain(at_s=1.5, what="drain"), replicas=2, grace_s=1.0, in_flight="resume")
    assert (request.replica, request.last_token_s) == (1, 5.5)


def test_a_rolling_update_replaces_all_and_never_has_too_few():
    asks = tuple(Ask(float(at_s), 4, 2) for at_s in range(30))
    _, lives = play(RollingUpdate(at_s=1.5, what="rolling_update", max_surge=1), asks=asks, replicas=2, most=3)
    ready = [(from_s, to_s) for _, from_s, to_s, state in lives if state == READY]
    assert sum(from_s > 1.5 for from_s, _ in ready) == 2
    for moment in (1.0, 2.5, 3.6, 5.6, 7.6, 20.0):
        assert sum(from_s <= moment < to_s for from_s, to_s in ready) >= 2


def test_a_slow_replica_takes_longer_from_the_next_iteration_on():
    (request,), _ = play(Slow(at_s=1.5, what="slow", factor=3.0, for_s=5.0))
    assert (request.first_token_s, request.last_token_s) == (1.0, 9.0)  # 2, 5, 8, and the last one at its own pace


def test_of_two_causes_to_be_slow_the_worse_counts_and_the_other_stays():
    long, bad = Slow(at_s=0.5, what="slow", factor=2.0, for_s=100.0), Slow(at_s=2.5, what="slow", factor=4.0, for_s=2.0)
    (request,), _ = play(long, bad)
    assert (request.first_token_s, request.last_token_s) == (1.0, 11.0)  # 3, 7, 9, 11


def test_without_a_router_requests_wait_and_answers_go_on():
    asks = (ANSWER, Ask(1.5, 4, 1))
    requests, _ = play(RouterLoss(at_s=1.0, what="router", for_s=5.0), asks=asks)
    assert [request.last_token_s for request in requests] == [5.0, 7.0]


def test_a_start_takes_the_sum_of_its_parts_or_what_is_written():
    assert Lifecycle().start_s(1.67e9) == pytest.approx(1 + 25 + 31)
    assert Lifecycle(provisioning_s=100, engine_start_s=1, warm_up_s=2, storage_bandwidth=1e9).start_s(3e9) == 106
    assert Lifecycle(cold_start_s=30).start_s(1e12) == 30
