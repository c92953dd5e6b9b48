"""Whatever happens, nobody waits for ever, and a replica ends a run as it began it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving import Ask, Case, cases, random_runs, schedulers

from sim.cluster import Cluster, Pool
from sim.policy import kinds_of
from sim.request import Request
from sim.router.round_robin import RoundRobin
from sim.scheduler import Scheduler
from sim.workload.traffic import Traffic

KINDS = sorted(kinds_of("sim.scheduler", Scheduler))


def ends_clean(case: Case) -> list[Request]:
    """Serve *case*, assert that its replica ends as it began, and return its requests."""
    requests = case.requests()
    cluster = Cluster([Pool(case.engine(), 1)], RoundRobin(), Traffic(requests))
    cluster.run()
    (replica,) = cluster._replicas
    state = replica._state
    assert not state.waiting
    assert (len(state.running), state.running.decoding, replica.outstanding) == (0, 0, 0)
    assert (state.running.promised_tokens, state.running.promised_blocks, state.kv.used) == (0, 0, 0)
    assert {request.status.name for request in requests} <= {"COMPLETED", "REJECTED", "FAILED"}
    return requests


@pytest.mark.parametrize("kind", KINDS)
def test_a_replica_ends_as_it_began(kind):
    @random_runs(100)
    @given(cases(kind, options=True))
    def check(case):
        ends_clean(case)

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_a_replica_that_verifies_drafts_ends_as_it_began(kind):
    @random_runs(20)
    @given(cases(kind, options=True, speculative=True))
    def check(case):
        ends_clean(case)

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_a_replica_whose_windows_free_blocks_ends_as_it_began(kind):
    @random_runs(20)
    @given(cases(kind, options=True, hybrid=True))
    def check(case):
        ends_clean(case)

    check()


@st.composite
def crowds(draw, kind) -> Case:
    """Everybody asks at once for all of the pool, or nearly: nobody can run beside another for long."""
    size, blocks = draw(st.sampled_from((1, 4))), draw(st.integers(2, 12))
    tokens = size * blocks
    prompts = draw(st.lists(st.integers(1, tokens - 1), min_size=1, max_size=8))
    asks = tuple(Ask(0.0, prompt, draw(st.integers(1, tokens - prompt))) for prompt in prompts)
    return Case(draw(schedulers(kind, options=True)), blocks, size, asks, prefix_caching=draw(st.booleans()))


@pytest.mark.parametrize("kind", KINDS)
def test_a_crowd_in_a_small_pool_is_served(kind):
    @random_runs(150)
    @given(crowds(kind))
    def check(case):
        ends_clean(case)

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_a_request_beyond_the_pool_is_refused(kind):
    (policy,) = (policy for name, policy in kinds_of("sim.scheduler", Scheduler).items() if name == kind)
    (request,) = ends_clean(Case(policy(), 4, 4, (Ask(0.0, 9, 8),)))
    assert request.status.name == "REJECTED"
    assert request.reason
