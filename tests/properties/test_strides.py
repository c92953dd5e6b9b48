"""Strides against single iterations: the same times of every request, the same gaps between tokens."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from pydantic import Field
from serving import Ask, Case, Closed, cases, closed_loops, fate, random_runs, serve

from sim.batch import Batch
from sim.cluster.stride import ListedStride, Stride
from sim.cost import Affine, Pace
from sim.cost.host import Host
from sim.cost.masks import Masks
from sim.metrics.rows import StrideRows
from sim.policy import kinds_of
from sim.request import Request
from sim.router import Choice, Fleet
from sim.router.least_kv import LeastKv
from sim.router.least_loaded import LeastLoaded
from sim.scheduler import Running, Scheduler, Tabled
from sim.scheduler.chunked_prefill import ChunkedPrefill
from sim.scheduler.window import Window

KINDS = sorted(kinds_of("sim.scheduler", Scheduler))


@dataclass(frozen=True)
class NoDelay:
    """What these test costs have in common; their constants are exact in binary."""

    windows: tuple[int, ...] = ()
    tokens_each: int = 1
    rebalances: None = None

    def splits(self, batch: Batch) -> bool:
        return False

    def breakdown(self, batch: Batch) -> dict[str, float]:
        return {"all": self.pace(batch, (0,) * len(self.windows)).first_s}

    def durations_s(self, batch: Batch, context_tokens, windows):
        """The time of each iteration by itself."""
        rows = zip(context_tokens.tolist(), *(row.tolist() for row in windows), strict=True)
        batches = (
            replace(batch, decode_context_tokens=row[0], decode_window_tokens=tuple(row[1:])) for row in rows
        )
        return np.array([self.pace(each, (0,) * len(self.windows)).first_s for each in batches])

    def limits(self, batch: Batch) -> dict[str, float]:
        return {"all": 1.0}

    def imbalance_s(self, batch: Batch) -> float | None:
        return None

    def admission_delay_s(self, input_tokens: int) -> float:
        return 0.0


@dataclass(frozen=True)
class Windowed(NoDelay):
    """Attention within windows: what a decode reads stops growing when it reaches one."""

    windows: tuple[int, ...] = (7, 20)

    def pace(self, batch: Batch, growing: tuple[int, ...] = ()) -> Pace:
        first_s = 2**-7 + 2**-10 * batch.tokens + 2**-12 * sum(batch.decode_window_tokens)
        return Pace(first_s, 2**-12 * sum(growing), 1 if batch.chunks else math.inf)


@dataclass(frozen=True)
class Hosted(NoDelay):
    """The longer of host and GPU time; requests reach the engine after a delay that grows with their prompt."""

    def pace(self, batch: Batch, growing: tuple[int, ...] = ()) -> Pace:
        host_s, gpu_s = 2**-5 + 2**-9 * batch.sequences, 2**-7 + 2**-10 * batch.context_tokens
        growth_s = 2**-10 * batch.decodes
        if batch.chunks:
            return Pace(max(host_s, gpu_s), 0.0, 1)
        if gpu_s >= host_s:
            return Pace(gpu_s, growth_s, math.inf)
        return Pace(host_s, 0.0, (host_s - gpu_s) // growth_s + 1)

    def imbalance_s(self, batch: Batch) -> float | None:
        return None

    def admission_delay_s(self, input_tokens: int) -> float:
        return 2**-8 * input_tokens


@dataclass(frozen=True)
class Masked(NoDelay):
    """The longer of GPU and masks, and then as long again for every mask: one kink, and a part that nothing hides."""

    def pace(self, batch: Batch, growing: tuple[int, ...] = ()) -> Pace:
        return Host(masks=Masks(2**-6, overlapped=True)).pace(
            batch, 2**-7 + 2**-10 * batch.context_tokens + 2**-7 * batch.masks, 2**-10 * batch.decodes
        )


def gaps(strides: StrideRows) -> Counter[float]:
    """How often each inter-token gap occurs: every token listed, as no report would do it."""
    count: Counter[float] = Counter()
    for row in range(len(strides.iterations)):
        for j in range(strides.iterations[row]):
            gap_s = strides.first_s[row] + j * strides.growth_s[row]
            count[gap_s] += strides.decodes[row] if j else strides.steady_gaps[row]
    for gap_s, sequences in zip(strides.odd_gaps_s, strides.odd_gap_counts, strict=True):
        count[gap_s] += sequences
    return +count


def compare(case: Case, **how) -> None:
    """Assert that *case* goes the same way in strides and by iteration, exactly."""
    (quick, strides), (slow, iterations) = (serve(case, by_iteration=single, **how) for single in (False, True))
    assert [(fate(request), request.replica) for request in quick] == [
        (fate(request), request.replica) for request in slow
    ]
    assert gaps(strides) == gaps(iterations)
    assert strides.iterations.sum() == len(iterations.iterations) == iterations.iterations.sum()
    for request in slow:
        assert request.status.name in ("REJECTED", "FAILED") or request.emitted_tokens == request.output_tokens


def check(strategy: st.SearchStrategy[Case], examples: int, **how) -> None:
    @random_runs(examples)
    @given(strategy)
    def equal(case):
        compare(case, **how)

    equal()


@pytest.mark.parametrize("kind", KINDS)
def test_same_times_whatever_the_workload(kind):
    check(cases(kind), 80)


@pytest.mark.parametrize("kind", KINDS)
def test_same_times_with_every_option(kind):
    check(cases(kind, options=True), 80)


@pytest.mark.parametrize("kind", KINDS)
def test_same_times_with_drafts(kind):
    check(cases(kind, speculative=True), 20)


@pytest.mark.parametrize("kind", KINDS)
def test_same_times_where_half_of_the_drafts_are_not_there(kind):
    def half(case):
        rates = case.acceptances.rates
        return replace(case, acceptances=replace(case.acceptances, mean_draft_tokens=len(rates) / 2))

    check(cases(kind, options=True, speculative=True).map(half), 10)


@pytest.mark.parametrize("kind", KINDS)
def test_same_times_with_drafts_and_every_option(kind):
    check(cases(kind, options=True, speculative=True), 20)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("speculative", [False, True], ids=["one token", "drafts"])
def test_same_times_when_windows_free_their_blocks(kind, speculative):
    check(cases(kind, options=True, speculative=speculative, hybrid=True), 12)


@pytest.mark.parametrize("kind", KINDS)
def test_same_times_when_blocks_come_back_from_tiers(kind):
    check(cases(kind, options=True, tiered=True), 15)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("eviction", ["lfu", "slru", "priority"])
def test_same_times_whoever_is_evicted_first(kind, eviction):
    evicting = st.tuples(cases(kind, options=True), cases(kind, options=True, tiered=True)).flatmap(st.sampled_from)
    check(evicting.map(lambda case: replace(case, eviction=eviction, prefix_caching=True)), 8)


@pytest.mark.parametrize("hybrid", [False, True])
def test_same_times_when_requests_are_swapped(hybrid):
    check(cases("continuous", options=True, swapping=True, hybrid=hybrid), 30)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cost", [Windowed(), Hosted()], ids=["windows", "host or GPU"])
def test_same_times_with_drafts_when_the_pace_changes_within_a_batch(kind, cost):
    check(cases(kind, longest=60, speculative=True), 6, cost=cost)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cost", [Windowed(), Hosted()], ids=["windows", "host or GPU"])
def test_same_times_when_the_pace_changes_within_a_batch(kind, cost):
    check(cases(kind, longest=60), 30, cost=cost)


@st.composite
def structured(draw, kind, *, speculative: bool) -> Case:
    """Some answers follow one of two grammars, which are compiled first."""
    case = draw(cases(kind, longest=60, options=True, speculative=speculative))
    schemas = draw(st.lists(st.sampled_from(("", "a", "b")), min_size=len(case.asks), max_size=len(case.asks)))
    demands = tuple({**demand, "schema": name} for demand, name in zip(case.demands, schemas, strict=True))
    return replace(case, demands=demands, compile_s=draw(st.sampled_from((0.0, 2**-5, 1.0))))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("speculative", [False, True], ids=["one token", "drafts"])
def test_same_times_when_masks_hold_up_the_gpu(kind, speculative):
    check(structured(kind, speculative=speculative), 8 if speculative else 20, cost=Masked())


@st.composite
def clusters(draw, kind) -> tuple[Case, int, Closed | None]:
    case = draw(cases(kind))
    return case, draw(st.integers(1, 3)), draw(st.none() | closed_loops(len(case.asks)))


@pytest.mark.parametrize("kind", KINDS)
def test_same_times_in_closed_loops_and_behind_a_router(kind):
    @random_runs(60)
    @given(clusters(kind))
    def equal(cluster):
        case, replicas, closed = cluster
        compare(case, replicas=replicas, router=LeastLoaded(), closed=closed)

    equal()


@st.composite
def ahead(draw) -> tuple[Case, int, Closed | None]:
    case, replicas, closed = draw(clusters("chunked_prefill"))
    return replace(case, decides_ahead=True), replicas, closed


def test_same_times_where_the_next_iteration_is_decided_ahead():
    @random_runs(120)
    @given(ahead())
    def equal(cluster):
        case, replicas, closed = cluster
        compare(case, replicas=replicas, router=LeastLoaded(), closed=closed)

    equal()


@pytest.mark.parametrize("how", ["hybrid", "speculative", "options"])
def test_same_times_ahead_with_windows_drafts_and_impatience(how):
    check(cases("chunked_prefill", longest=60, **{how: True}).map(lambda case: replace(case, decides_ahead=True)), 60)


class Seeing(LeastKv):
    """Notes how full it sees the caches when it chooses."""

    seen: list[float] = Field(default_factory=list)

    def begin(self, fleet: Fleet) -> Choice:
        choose = super().begin(fleet)

        def note(request: Request) -> int:
            self.seen.extend(load.kv_usage for load in fleet.loads.values())
            return choose(request)

        return note


@pytest.mark.parametrize("hybrid", [False, True])
def test_same_replicas_by_the_blocks_in_use_also_where_windows_free_some(hybrid):
    @random_runs(60)
    @given(cases("chunked_prefill", longest=60, hybrid=hybrid), st.integers(2, 4))
    def run(case, replicas):
        seen = []
        for single in (False, True):
            router = Seeing()
            requests, _ = serve(case, by_iteration=single, replicas=replicas, router=router)
            seen.append((router.seen, [(fate(request), request.replica) for request in requests]))
        assert seen[0] == seen[1]

    run()


def test_replicas_that_end_at_the_same_instant():
    """Who of them is free for the next request of a closed loop does not depend on when their strides began."""
    asks = tuple(Ask(0.0, *tokens) for tokens in ((8, 8),) * 4 + ((4, 1), (4, 4), (4, 4), (4, 1), (4, 4), (4, 4)))
    tick_s = 2**-6
    closed = Closed((0.0,) * 3, (0.0, tick_s, tick_s, 0.0, tick_s, tick_s, 0.0, 0.0, 0.0, 0.0), tuple(range(10)))
    case = Case(ChunkedPrefill(max_num_batched_tokens=4, max_num_seqs=1), 64, 4, asks)
    compare(case, replicas=3, router=LeastLoaded(), closed=closed)


def test_a_request_sent_by_an_answer_is_seen_by_another_replica_at_that_instant():
    """Replica 1 answers at 3 s, a boundary of replica 0, to which the next request goes: ends before beginnings."""
    asks = tuple(Ask(0.0, 4, output) for output in (20, 20, 2, 3, 1))
    closed = Closed((0.0,) * 4, (0.0, 0.0, 100.0, 0.0, 0.0), tuple(range(5)))
    case = Case(ChunkedPrefill(), 64, 4, asks)
    for by_iteration in (False, True):
        how = {"closed": closed, "cost": Affine(base_s=1.0).build(), "by_iteration": by_iteration}
        requests, _ = serve(case, replicas=2, router=LeastLoaded(), **how)
        assert [request.replica for request in requests] == [0, 1, 0, 1, 0]
        assert (requests[4].arrival_s, requests[4].admitted_s) == (3.0, 3.0)


def test_strides_are_taken():
    """A lone answer of 1,000 tokens is two strides, its prefill and its 999 decodes; two that overlap are few more."""
    lone = Case(ChunkedPrefill(), 200, 16, (Ask(0.0, 10, 1000),))
    assert serve(lone)[1].iterations.tolist() == [1, 999]
    pair = Case(ChunkedPrefill(), 200, 16, (Ask(0.0, 10, 1000), Ask(1.0, 10, 1000)))
    assert len(serve(pair)[1].iterations) == 5  # prefill, alone, second prefill, together, alone


def _end_s(self, iterations=None):
    k = self.iterations if iterations is None else iterations
    return self.start_s + k * self.first_s + self.growth_s * (k * (k + 1) // 2 if k > 1 else 0)


def _one_late(real):
    return lambda self, at_s: min(real(self, at_s) + 1, self.iterations)


def _from_now(real):
    return lambda self, iterations, after=0: real(self, iterations)


def _one_more(real):
    return lambda self, *args, **more: real(self, *args, **more) + 1


@pytest.mark.parametrize(
    ("owner", "method", "wrong", "how"),
    [
        (Stride, "end_s", lambda real: _end_s, {}),
        (Stride, "iterations_until", _one_late, {}),
        (Running, "new_blocks", _from_now, {}),
        (Running, "affordable", _one_more, {}),
        (Running, "next_finish", _one_more, {}),
        (Window, "next_crossing", _one_more, {"cost": Windowed()}),
        (Tabled, "within", _one_more, {}),
        (ListedStride, "iterations_until", _one_late, {}),
    ],
    ids=["end_s", "iterations_until", "new_blocks", "affordable", "next_finish", "next_crossing", "drafts", "listed"],
)
def test_an_error_in_the_closed_form_is_found(monkeypatch, owner, method, wrong, how):
    monkeypatch.setattr(owner, method, wrong(getattr(owner, method)))

    def differs(case: Case) -> bool:
        try:
            compare(case, **how)
        except Exception:  # an error may also break the pool or the batch
            return True
        return False

    strategy = cases("chunked_prefill", speculative=owner in (Tabled, ListedStride))
    find(strategy, differs, settings=settings(random_runs(150), phases=[Phase.generate]))
