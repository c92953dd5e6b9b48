"""Conversations, agents and retrieval as a workload."""

from pathlib import Path

import numpy as np
import pytest
from serving import Case

from sim.cluster import Cluster, Pool
from sim.router.round_robin import RoundRobin
from sim.scheduler.chunked_prefill import ChunkedPrefill
from sim.workload import Workload, generate

HERE = Path()


def traffic(count, **options):
    arrivals = {"kind": "sessions", "rate": 2.0} | options
    return generate(Workload(arrivals=arrivals, num_requests=count), 7, HERE)


def test_a_turn_begins_with_all_that_was_said():
    made = traffic(200)
    assert len(made.requests) == 200
    assert [request.index for request in made.requests] == list(range(200))
    assert made.follow_ups, "some sessions go on"
    for before, after in ((made.requests[index], request) for index, request in made.follow_ups.items()):
        assert after.session_id == before.session_id
        assert after.turn == before.turn + 1
        said = (*before.segments, (before.output_segment, before.output_tokens))
        assert after.segments[: len(said)] == said
        assert after.input_tokens == sum(tokens for _, tokens in after.segments) > before.total_tokens
    assert {request.segments[0] for request in made.requests} == {("system", 500)}


def test_means_are_what_was_asked_for():
    made = traffic(20_000, turns=4, input_tokens=100, output_tokens=50, think_s=3, max_context_tokens=10**9)
    openers = [request for request in made.requests if not request.turn]
    assert len(made.requests) / len(openers) == pytest.approx(4, rel=0.05)
    assert np.mean([request.output_tokens for request in made.requests]) == pytest.approx(50, rel=0.03)
    assert np.mean([request.segments[-1][1] for request in made.requests]) == pytest.approx(100, rel=0.03)
    assert np.mean([request.think_s for request in made.requests if request.turn]) == pytest.approx(3, rel=0.03)
    gaps_s = np.diff([request.arrival_s for request in openers])
    assert gaps_s.mean() == pytest.approx(1 / 2, rel=0.05)


def test_a_session_ends_before_its_context_is_full():
    made = traffic(500, turns=50, max_context_tokens=4000)
    assert max(request.total_tokens for request in made.requests if request.turn) <= 4000


def test_popular_passages_are_shared():
    made = traffic(300, turns=1, passages=3, passage_tokens=100)
    names = [name for request in made.requests for name, _ in request.segments if name.startswith("passage")]
    assert len(names) == 900
    assert names.count("passage 0") == pytest.approx(900 / 9.79, rel=0.3), "1 / (1 + 1/2 + ... + 1/10,000)"


def test_equal_seeds_give_equal_sessions():
    assert list(map(repr, traffic(100).requests)) == list(map(repr, traffic(100).requests))


def test_a_returning_conversation_finds_its_own_answer_warm():
    """With generated blocks keyed a later turn computes its new input only, but for parts of a block."""
    made = traffic(50, rate=0.01, turns=10, think_s=1)
    case = Case(ChunkedPrefill(), 10**5, 1, (), prefix_caching=True, cache_generated=True)
    cold = 0
    for index, after in sorted(made.follow_ups.items()):
        before = made.requests[index]
        assert after.input_tokens - before.total_tokens == after.segments[-1][1]
        cold += after.segments[-1][1]
    Cluster([Pool(case.engine(), 1)], RoundRobin(), made).run()
    later = [request for request in made.requests if request.turn]
    computed = sum(request.input_tokens - request.cached_tokens for request in later)
    assert computed == pytest.approx(cold, rel=0.02)
