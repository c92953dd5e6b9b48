"""Every router on random workloads: strides are as good as iterations, and nobody is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving import TICK_S, Case, cases, closed_loops, fate, random_runs, serve

from sim.policy import kinds_of
from sim.router import Router

ROUTERS = kinds_of("sim.router", Router)
_OPTIONS = {
    "short_tokens": st.integers(1, 40),
    "short_replicas": st.integers(1, 4),
    "cache_threshold": st.sampled_from((0.0, 0.3)),
    "balance_abs_threshold": st.sampled_from((0, 2, 64)),
    "router_temperature": st.sampled_from((0.0, 0.5)),
    "latency_s": st.sampled_from((0.0, 0.0, TICK_S, 0.3)),
    "staleness_s": st.sampled_from((0.0, 0.0, 8 * TICK_S, 1.0)),
}


def routers(kind: str) -> st.SearchStrategy[Router]:
    """Routers of that *kind* with any of the options of `_OPTIONS` that they have."""
    fields = ROUTERS[kind].model_fields
    options = {name: option for name, option in _OPTIONS.items() if name in fields}
    if kind == "weighted":  # which goes by reports only
        options["staleness_s"] = st.sampled_from((0.05, 1.0))
    return st.builds(ROUTERS[kind], **options)


@st.composite
def fleets(draw, kind):
    """Return a case, its router, its replicas and perhaps a closed loop."""
    scheduler = draw(st.sampled_from(("chunked_prefill", "continuous", "static")))
    case = draw(cases(scheduler, options=True))
    return case, draw(routers(kind)), draw(st.integers(1, 4)), draw(st.none() | closed_loops(len(case.asks)))


@pytest.mark.parametrize("kind", sorted(ROUTERS))
def test_strides_choose_the_same_replicas_as_single_iterations_and_lose_nobody(kind):
    @random_runs(40)
    @given(fleets(kind))
    def equal(fleet):
        case, router, replicas, closed = fleet
        how = {"router": router, "replicas": replicas, "closed": closed}
        strides, _ = serve(case, **how)
        single, _ = serve(case, by_iteration=True, **how)
        assert [(request.replica, *fate(request)) for request in strides] == [
            (request.replica, *fate(request)) for request in single
        ]
        assert {request.status.name for request in strides} <= {"COMPLETED", "REJECTED", "FAILED"}
        assert all(0 <= request.replica < replicas for request in strides)

    equal()


@pytest.mark.parametrize("kind", sorted(ROUTERS))
def test_the_same_seed_gives_the_same_choices(kind):
    @random_runs(10)
    @given(fleets(kind))
    def equal(fleet):
        case, router, replicas, closed = fleet
        runs = [serve(case, router=router, replicas=replicas, closed=closed)[0] for _ in range(2)]
        assert [request.replica for request in runs[0]] == [request.replica for request in runs[1]]

    equal()


@pytest.mark.parametrize("kind", sorted(ROUTERS))
def test_a_router_that_takes_its_time_delays_the_first_token_by_that(kind):
    @random_runs(10)
    @given(cases("chunked_prefill"), routers(kind))
    def check(case, router):
        alone = Case(case.scheduler, 1000, case.block_size, case.asks[:1])
        ((request,), _), ((late,), _) = (
            serve(alone, router=router.model_copy(update={"latency_s": latency_s})) for latency_s in (0.0, 0.25)
        )
        assert late.first_token_s == request.first_token_s + 0.25

    check()
