"""Prefill and decode on different replicas: strides are as good as iterations, and nothing is lost or kept."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving import TICK_S, Case, Closed, cases, closed_loops, fate, random_runs, roomy

from sim.cluster import Cluster, Pool, Port
from sim.memory.footprint import KvFootprint
from sim.metrics.gaps import gaps_of, unexplained_gap_share
from sim.metrics.rows import RequestRows, StrideRows
from sim.metrics.transfers import TransferRows
from sim.policy import kinds_of
from sim.request import Request
from sim.router.disaggregation import Disaggregation, LocalPrefill
from sim.router.least_loaded import LeastLoaded
from sim.router.round_robin import RoundRobin
from sim.scheduler import Scheduler
from sim.workload.traffic import Traffic

KINDS = sorted(kind for kind, policy in kinds_of("sim.scheduler", Scheduler).items() if policy.disaggregates)

first_tokens = st.sampled_from(("prefill", "transfer", "decode"))
orders = st.sampled_from(("prefill_first", "decode_first"))
local_prefills = st.builds(LocalPrefill, below_tokens=st.sampled_from((0, 0, 5)), queue_above=st.none() | st.just(1))
ports = st.builds(
    Port,
    st.builds(
        KvFootprint,
        st.sampled_from((1, 2, 4)),
        st.sampled_from((1, 2, 8)),
        st.sampled_from((((None, 2.0**10),), ((None, 2.0**9), (8, 2.0**9)))),
        st.sampled_from((0.0, 2.0**11)),
    ),
    st.sampled_from((2.0**10, 2.0**14, 2.0**24)),
)


@st.composite
def options(draw) -> Disaggregation:
    order = draw(orders)
    return Disaggregation(
        first_token=draw(first_tokens),
        order=order,
        overlap=order == "decode_first" and draw(st.booleans()),
        latency_s=draw(st.sampled_from((0.0, TICK_S, 0.25))),
        local_prefill=draw(local_prefills),
        encode_s=draw(st.sampled_from((0.0, 0.0, TICK_S))),
    )


@st.composite
def fleets(draw, kind: str, **features: bool) -> dict[str, Any]:
    """Engines with *features* as `cases` has them, on both sides; the scheduler that decodes has options of its own."""
    case = draw(cases(kind, options=True, longest=30, **features))
    decodes_on = draw(cases(kind, **features)).scheduler
    if case.acceptances is not None:
        decodes_on = roomy(decodes_on, case.acceptances.tokens_each)
    return {
        "case": case,
        "decodes_on": decodes_on,
        "options": draw(options()),
        "replicas": (draw(st.integers(1, 3)), draw(st.integers(1, 3))),
        "ports": (draw(ports), draw(ports)),
        "router": draw(st.sampled_from((RoundRobin(), LeastLoaded()))),
        "closed": draw(st.none() | closed_loops(len(case.asks))),
        "ranks": draw(st.sampled_from((1, 1, 2))),
    }


def serve(
    case: Case,
    decodes_on: Scheduler,
    options: Disaggregation,
    replicas: tuple[int, int],
    ports: tuple[Port, Port],
    router: Any,
    closed: Closed | None,
    ranks: int = 1,
    *,
    by_iteration: bool = False,
) -> tuple[Cluster, list[Request], StrideRows, TransferRows]:
    """Play *case* on prefill and decode replicas."""
    engines = [
        replace(one.engine(by_iteration=by_iteration), attention_ranks=ranks)
        for one in (case, replace(case, scheduler=decodes_on))
    ]
    pools = [
        Pool(engines[0], replicas[0], role="prefill", port=ports[0]),
        Pool(engines[1], replicas[1], role="decode", port=ports[1]),
    ]
    requests = case.requests()
    traffic = Traffic(requests) if closed is None else closed.traffic(requests)
    cluster = Cluster(pools, router, traffic, disaggregation=options)
    return cluster, requests, cluster.run(), cluster.transfers()


def left_over(cluster: Cluster) -> list[Any]:
    """Return what replicas and services still know at the end; nothing, if all is well."""
    found: list[Any] = [stages._jobs for stages in cluster._stages.values()]
    found += [stages._prompts for stages in cluster._stages.values()]
    for replica in cluster._replicas:
        state = replica._state
        found += [len(state.waiting), len(state.running), state.running.decoding, state.kv.used, replica.outstanding]
        found += [state.running.loading, state.loads, state.kv._expected]
        found += [replica._moved, replica._emissions._silent, replica._serving]
        found += [replica.outstanding_tokens, replica.pending_tokens, state.running.promised_blocks]
    return [thing for thing in found if thing]


def gap_sum_is_explained(requests: list[Request], strides: StrideRows) -> bool:
    done = [request for request in requests if request.status.name == "COMPLETED"]
    return len(done) < len(requests) or unexplained_gap_share(RequestRows.of(requests), gaps_of(strides)) < 1e-9


PLAIN = [(kind, {}, 40) for kind in KINDS]
WITH = [
    (kind, dict.fromkeys(features, True), 10)
    for kind in KINDS
    for features in (("speculative",), ("hybrid",), ("speculative", "hybrid"), ("tiered",), ("swapping",))
    if features != ("swapping",) or kind == "continuous"
]


@pytest.mark.parametrize(("kind", "features", "examples"), PLAIN + WITH, ids=str)
def test_strides_are_as_good_as_iterations_and_nothing_is_kept(kind, features, examples):
    @random_runs(examples)
    @given(fleets(kind, **features))
    def equal(fleet):
        cluster, requests, strides, transfers = serve(**fleet)
        single = serve(**fleet, by_iteration=True)
        assert [(request.replica, *fate(request)) for request in requests] == [
            (request.replica, *fate(request)) for request in single[1]
        ]
        for name in TransferRows.__dataclass_fields__:
            assert getattr(transfers, name).tolist() == getattr(single[3], name).tolist()
        assert left_over(cluster) == []
        assert {request.status.name for request in requests} <= {"COMPLETED", "REJECTED", "FAILED"}
        assert gap_sum_is_explained(requests, strides)
        assert gap_sum_is_explained(single[1], single[2])

    equal()


@pytest.mark.parametrize("kind", KINDS)
def test_a_request_moves_once_at_most_and_waits_at_least_for_its_bytes(kind):
    @random_runs(10)
    @given(fleets(kind))
    def check(fleet):
        _, requests, _, transfers = serve(**fleet)
        assert max(Counter(transfers.request.tolist()).values(), default=0) <= 1
        assert (transfers.arrive_s >= transfers.prefilled_s).all()
        assert (transfers.arrive_s >= transfers.begin_s).all()
        for place in transfers.request.tolist():
            request = requests[place]
            assert not math.isnan(request.first_token_s) or request.status.name != "COMPLETED"

    check()
