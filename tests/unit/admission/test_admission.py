"""Who is turned away before a replica is chosen, and that nobody is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fleets import fleet_of, request
from hypothesis import given
from serving import Ask, Case, cases, closed_loops, fate, random_runs, serve

from sim.admission.queue_limit import QueueLimit
from sim.admission.slo_aware import SloAware
from sim.admission.token_bucket import TokenBucket
from sim.cost import Affine
from sim.request import Status
from sim.router.least_loaded import LeastLoaded
from sim.scheduler.chunked_prefill import ChunkedPrefill

POLICIES = {
    "token_bucket": TokenBucket(rate=2, burst=2),
    "queue_limit": QueueLimit(max_outstanding=1.5),
    "slo_aware": SloAware(ttft_s=0.25, prefill_tokens_per_s=40),
}


def begun(policy, *outstanding, **loads):
    fleet, replicas = fleet_of(*outstanding)
    verdict = policy.begin(fleet)
    for index, replica in enumerate(replicas):
        for name, values in loads.items():
            setattr(replica, name, values[index])
        fleet.join(replica)
    return verdict, fleet, replicas


def asking(at_s, **fields):
    return request(10, arrival_s=at_s, **fields)


def test_a_bucket_gives_its_burst_at_once_and_its_rate_after_that():
    verdict, *_ = begun(TokenBucket(rate=2, burst=3), 0)
    assert [bool(verdict(asking(0.0))) for _ in range(4)] == [False, False, False, True]
    assert [bool(verdict(asking(at_s))) for at_s in (0.25, 0.5, 0.75, 1.0)] == [True, False, True, False]
    assert [bool(verdict(asking(100.0))) for _ in range(4)] == [False, False, False, True]
    assert verdict(asking(100.0)) == "HTTP 429: over 2 requests/s"


def test_a_bucket_of_tokens_takes_prompts_by_their_length():
    verdict, *_ = begun(TokenBucket(rate=10, burst=25, unit="tokens"), 0)
    assert [bool(verdict(asking(0.0))) for _ in range(3)] == [False, False, True]
    assert not verdict(asking(0.5))


def test_a_bucket_for_each_tenant():
    verdict, *_ = begun(TokenBucket(rate=1, burst=1, each="tenant"), 0)
    asked = [asking(0.0, tenant=tenant) for tenant in ("a", "b", "a")]
    assert [verdict(one) for one in asked] == ["", "", "HTTP 429: over 1 requests/s of a"]


def test_a_limit_grows_with_the_replicas_that_are_ready():
    verdict, fleet, replicas = begun(QueueLimit(max_outstanding=2), 2, 1)
    assert not verdict(asking(0.0))
    replicas[1].outstanding = 2
    fleet.changed(1)
    assert verdict(asking(0.0)) == "HTTP 429: 4 requests are outstanding"
    fleet.leave(0)
    assert verdict(asking(0.0)) == "HTTP 429: 2 requests are outstanding"
    replicas[1].outstanding = 1
    fleet.changed(1)
    assert not verdict(asking(0.0))


def test_the_first_token_is_predicted_from_the_least_pending_work():
    # 1,000 tokens/s: 90 pending tokens and 10 of its own take 0.1 s.
    policy = SloAware(ttft_s=0.1, prefill_tokens_per_s=1000)
    for pending, turned_away in ((90, False), (91, True)):
        verdict, *_ = begun(policy, 0, 0, pending_tokens=(pending, 500))
        assert bool(verdict(asking(0.0))) == turned_away


@pytest.mark.parametrize("kind", POLICIES)
def test_urgent_requests_are_protected(kind):
    policy = POLICIES[kind].model_copy(update={"protect_priority": 1})
    verdict, *_ = begun(policy, 99, pending_tokens=(1000,))
    for _ in range(3):
        verdict(asking(0.0, priority=2))
    assert verdict(asking(0.0, priority=2))
    assert not verdict(asking(0.0, priority=1))


@pytest.mark.parametrize("kind", POLICIES)
def test_nobody_is_lost_and_strides_turn_the_same_away(kind):
    @random_runs(60)
    @given(cases("chunked_prefill", options=True), closed_loops(12))
    def check(case, closed):
        closed = replace(closed, think_s=closed.think_s[: len(case.asks)], sessions=closed.sessions[: len(case.asks)])
        how = {"replicas": 2, "router": LeastLoaded(), "closed": closed, "admission": POLICIES[kind]}
        strides, _ = serve(case, **how)
        single, _ = serve(case, by_iteration=True, **how)
        assert [fate(one) for one in strides] == [fate(one) for one in single]
        assert all(one.status in (Status.COMPLETED, Status.REJECTED, Status.FAILED) for one in strides)
        assert all(one.reason for one in strides if one.status is not Status.COMPLETED)

    check()


def test_shedding_keeps_the_first_token_of_who_is_let_in():
    # Twice what a replica can serve: prompts of 100 tokens at 1,000 tokens/s come every 0.05 s, one at a time.
    case = Case(ChunkedPrefill(max_num_seqs=1), 100, 16, tuple(Ask(0.05 * turn, 100, 1) for turn in range(200)))
    cost = Affine(per_token_s=1e-3).build()
    admission = SloAware(ttft_s=0.35, prefill_tokens_per_s=1000)
    kept, _ = serve(case, cost=cost, admission=admission)
    everybody, _ = serve(case, cost=cost)
    ttft_s = [one.first_token_s - one.arrival_s for one in kept if one.status is Status.COMPLETED]
    assert max(ttft_s) <= 0.35 + 1e-9
    assert 95 <= len(ttft_s) <= 110
    assert everybody[-1].first_token_s - everybody[-1].arrival_s > 9
