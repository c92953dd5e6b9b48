"""Replicas that come and go: no request is lost without a status, and strides give the same times as iterations."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving import TICK_S, Case, cases, fate, random_runs

from sim.autoscaler import Autoscaler
from sim.autoscaler.forecast import Forecast
from sim.autoscaler.gpu_utilization import GpuUtilization
from sim.autoscaler.kv_use import KvUse
from sim.autoscaler.queue_depth import QueueDepth
from sim.autoscaler.tokens_per_s import TokensPerSecond
from sim.autoscaler.ttft import TimeToFirstToken
from sim.cluster import Cluster, Pool
from sim.failures import Drain, Failures, Loss, RollingUpdate, RouterLoss, Slow
from sim.metrics.instances import InstanceRows, InstanceState
from sim.policy import kinds_of
from sim.request import Request, Status
from sim.router.least_loaded import LeastLoaded
from sim.scheduler import Scheduler
from sim.workload.traffic import Traffic

KINDS = sorted(kinds_of("sim.scheduler", Scheduler))

times = st.integers(10, 150).map(lambda ticks: ticks * TICK_S)
spans = st.sampled_from((TICK_S, 0.25, 1.0, 8.0))


@dataclass(frozen=True)
class Fleet:
    """A case, served by replicas that break."""

    case: Case
    failures: Failures
    pool: dict[str, Any]
    ranks: int
    gateway_timeout_s: float

    def play(self, *, by_iteration: bool = False) -> tuple[list[Request], InstanceRows]:
        requests = self.case.requests()
        engine = replace(self.case.engine(by_iteration=by_iteration), attention_ranks=self.ranks)
        cluster = Cluster(
            [Pool(engine, **self.pool)],
            LeastLoaded(),
            Traffic(requests),
            failures=self.failures,
            gateway_timeout_s=self.gateway_timeout_s,
        )
        cluster.run()
        return requests, cluster.lives()


@st.composite
def autoscalers(draw, replicas: int) -> Autoscaler | None:
    """Hasty ones, so that short workloads see them at work."""
    hasty = {
        "max_replicas": draw(st.integers(replicas, 4)),
        "interval_s": draw(st.sampled_from((8 * TICK_S, 0.5))),
        "lag_s": draw(st.sampled_from((0.0, TICK_S))),
        "stabilization_down_s": draw(st.sampled_from((0.0, 0.5))),
    }
    if draw(st.booleans()):
        hasty |= {"scale_to_zero": True, "idle_s": draw(st.sampled_from((0.0, 0.25)))}
    return draw(
        st.sampled_from(
            (
                None,
                QueueDepth(target=1.0, **hasty),
                QueueDepth(target=0.5, running=False, **hasty),
                KvUse(target=0.25, **hasty),
                GpuUtilization(target=0.5, window_s=0.25, **hasty),
                TokensPerSecond(target=64.0, window_s=0.25, **hasty),
                TimeToFirstToken(target_s=0.125, window_s=0.5, **hasty),
                Forecast(target=4.0, ahead_s=0.5, method="trend", window_s=0.5, **hasty),
            )
        )
    )


@st.composite
def fleets(draw, kind: str, *, scaled: bool = False) -> Fleet:
    case = draw(cases(kind, longest=100, options=True))
    keeps_batch = kinds_of("sim.scheduler", Scheduler)[kind].keeps_batch
    replicas, ranks = draw(st.integers(1, 3)), 1 if keeps_batch else draw(st.sampled_from((1, 1, 2)))
    autoscaler = draw(autoscalers(replicas)) if scaled else None
    which = st.integers(0, replicas - 1)
    losses = st.builds(Loss, at_s=times, what=st.just("replica"), which=which, for_s=spans)
    events = st.one_of(
        losses,
        losses,
        st.builds(Loss, at_s=times, what=st.just("node"), for_s=spans),
        st.builds(Slow, at_s=times, what=st.just("slow"), which=which, factor=st.sampled_from((2.0, 4.0)), for_s=spans),
        st.builds(Drain, at_s=times, what=st.just("drain"), which=which),
        st.builds(RollingUpdate, at_s=times, what=st.just("rolling_update"), max_unavailable=st.integers(0, 2)),
        st.builds(RouterLoss, at_s=times, what=st.just("router"), for_s=spans),
    )
    failures = Failures(
        gpus_per_node=2,
        events=tuple(draw(st.lists(events, min_size=0 if scaled else 2, max_size=8))),
        in_flight=draw(st.sampled_from(("resume", "retry", "fail"))),
        max_retries=draw(st.sampled_from((3, 1, 0))),
    )
    pool = {
        "replicas": replicas,
        "most": failures.max_surge + (replicas if autoscaler is None else autoscaler.max_replicas),
        "autoscaler": autoscaler,
        "cold_start_s": draw(st.sampled_from((0.0, TICK_S, 1.0))),
        "grace_s": draw(st.sampled_from((math.inf, 0.0, 0.5))),
    }
    return Fleet(case, failures, pool, ranks, draw(st.sampled_from((0.5, 64.0))))


def check(fleet: Fleet) -> None:
    requests, lives = fleet.play()
    for request in requests:
        assert request.status in (Status.COMPLETED, Status.REJECTED, Status.FAILED)
        assert request.reason or request.status is Status.COMPLETED
        if request.status is Status.COMPLETED:
            assert request.emitted_tokens == request.output_tokens
            assert request.arrival_s <= request.admitted_s < request.first_token_s <= request.last_token_s
        assert request.retries <= fleet.failures.max_retries
    assert (lives.from_s < lives.to_s).all()
    for replica in set(lives.replica.tolist()):  # no replica is in two states at a time
        own = lives.where(lives.replica == replica)
        assert (own.from_s[1:] >= own.to_s[:-1]).all()
    _, live = lives.number(InstanceState.STARTING, InstanceState.READY)
    assert live.max(initial=0) <= fleet.pool["most"]
    slow, lives_of_slow = fleet.play(by_iteration=True)
    assert [(fate(request), request.replica, request.retries, request.lost_tokens) for request in requests] == [
        (fate(request), request.replica, request.retries, request.lost_tokens) for request in slow
    ]
    assert [request.discarded_s for request in requests] == [request.discarded_s for request in slow]
    for column in ("replica", "from_s", "to_s", "state"):
        assert getattr(lives, column).tolist() == getattr(lives_of_slow, column).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_lost_and_strides_change_nothing(kind):
    @random_runs(60 if kind == "chunked_prefill" else 8)
    @given(fleets(kind))
    def holds(fleet):
        check(fleet)

    holds()


@pytest.mark.parametrize("kind", KINDS)
def test_so_it_is_while_replicas_are_scaled(kind):
    @random_runs(60 if kind == "chunked_prefill" else 8)
    @given(fleets(kind, scaled=True))
    def holds(fleet):
        check(fleet)

    holds()
