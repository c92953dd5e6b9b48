"""Random engines and workloads for the tests of scheduling, and how they are played."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from sim.admission import Admission
from sim.cluster import Cluster, Engine, Pool, Timeouts
from sim.cost import Affine, StepCost
from sim.kv import Eviction, Pages, Tier, WindowTables
from sim.kv.tiers import Write
from sim.metrics.rows import StrideRows
from sim.policy import kinds_of
from sim.request import Request
from sim.router import Router
from sim.router.round_robin import RoundRobin
from sim.scheduler import Acceptances, Scheduler
from sim.speculation import Acceptance
from sim.workload.traffic import Traffic

TICK_S = 2.0**-6
"""Arrivals and pauses are multiples of it."""
COSTS = {"base_s": 2**-7, "per_token_s": 2**-10, "per_context_token_s": 2**-13, "per_seq_s": 2**-9}
"""Exact in binary, as are all sums of their multiples here: ties stay ties however time is added up."""
LATER_S = 4096.0
"""Longer than any of these workloads takes."""


def random_runs(examples: int) -> settings:
    """Settings of a property: the same examples in every run, so that a failure is news."""
    return settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@dataclass(frozen=True)
class Ask:
    """One request of a workload."""

    arrival_s: float
    input_tokens: int
    output_tokens: int
    segments: tuple[tuple[str, int], ...] = ()
    output_segment: str | None = None

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True)
class Case:
    """An engine and its workload."""

    scheduler: Scheduler
    num_blocks: int
    block_size: int
    asks: tuple[Ask, ...]
    prefix_caching: bool = False
    cache_generated: bool = False
    partial_blocks: bool = False
    demands: tuple[dict[str, Any], ...] = ()
    timeouts: Timeouts = field(default_factory=Timeouts)
    acceptances: Acceptances | None = None
    pages: Pages | None = None
    tiers: tuple[Tier, ...] = ()
    write: Write = "write_through"
    swap: Tier | None = None
    compile_s: float = 0.0
    eviction: Eviction = "lru"
    decides_ahead: bool = False

    def engine(self, *, by_iteration: bool = False, cost: StepCost | None = None) -> Engine:
        return Engine(
            self.scheduler,
            cost or Affine(**COSTS).build(),
            self.num_blocks,
            self.block_size,
            self.prefix_caching,
            self.cache_generated,
            max_model_len=10**6,
            by_iteration=by_iteration,
            timeouts=self.timeouts,
            partial_blocks=self.partial_blocks,
            acceptances=self.acceptances,
            pages=self.pages,
            tiers=self.tiers,
            write=self.write,
            swap=self.swap,
            compile_s=self.compile_s,
            eviction=self.eviction,
            decides_ahead=self.decides_ahead,
        )

    def refuses(self, request: Request) -> bool:
        """Tell whether *request* is more than the pool or the scheduler can ever serve."""
        pool = self.engine().kv_cache()
        return not pool.fits(request) or bool(self.scheduler.never(request, pool))

    def requests(self) -> list[Request]:
        return [
            Request(
                index,
                ask.input_tokens,
                ask.output_tokens,
                ask.arrival_s,
                segments=ask.segments,
                output_segment=ask.output_segment,
                **(self.demands[index] if self.demands else {}),
            )
            for index, ask in enumerate(self.asks)
        ]


def serve(
    case: Case,
    *,
    replicas: int = 1,
    router: Router | None = None,
    closed: Closed | None = None,
    seed: int = 0,
    admission: Admission | None = None,
    **engine: Any,
) -> tuple[list[Request], StrideRows]:
    """Play *case* and return its requests and strides."""
    requests = case.requests()
    traffic = Traffic(requests) if closed is None else closed.traffic(requests)
    pools = [Pool(case.engine(**engine), replicas)]
    strides = Cluster(pools, router or RoundRobin(), traffic, seed=seed, admission=admission).run()
    return requests, strides


def fate(request: Request) -> tuple[Any, ...]:
    """What became of *request*, comparable: None where it never happened."""
    times = (request.admitted_s, request.first_token_s, request.last_token_s)
    return (
        request.status.name.lower(),
        *(None if math.isnan(time_s) else time_s for time_s in times),
        request.preemptions,
        request.cached_tokens,
    )


@dataclass(frozen=True)
class Closed:
    """A closed loop: when each slot opens, and the pause after each request [s]; the session of each request, too."""

    slots_open_s: tuple[float, ...]
    think_s: tuple[float, ...]
    sessions: tuple[int, ...]

    def traffic(self, requests: list[Request]) -> Traffic:
        last: dict[int, Request] = {}
        follow_ups: dict[int, Request] = {}
        for request in requests:
            request.think_s = self.think_s[request.index]
            before = last.get(self.sessions[request.index])
            if before is not None:
                follow_ups[before.index] = request
            last[self.sessions[request.index]] = request
        return Traffic(
            requests,
            slots_open_s=np.array(self.slots_open_s) if self.slots_open_s else None,
            think_s=np.array(self.think_s),
            follow_ups=follow_ups,
        )


ticks = st.integers(0, 100).map(lambda count: count * TICK_S)


@st.composite
def closed_loops(draw: Callable[..., Any], requests: int) -> Closed:
    """Slots and sessions for that many *requests*; few distinct pauses, so that replicas often tie."""
    pauses = st.sampled_from((0.0, 0.0, TICK_S, 3 * TICK_S, 1.0))
    return Closed(
        tuple(draw(st.lists(pauses, max_size=4))),
        tuple(draw(st.lists(pauses, min_size=requests, max_size=requests))),
        tuple(draw(st.lists(st.integers(0, 2 * requests), min_size=requests, max_size=requests))),
    )


_KNOBS = {
    "max_num_batched_tokens": st.sampled_from((1, 2, 3, 5, 6, 8, 16, 64)),
    "max_num_seqs": st.sampled_from((1, 2, 3, 5, 16)),
    "batch_size": st.sampled_from((1, 2, 3, 8)),
    "max_wait_s": st.sampled_from((None, None, *(ticks * TICK_S for ticks in (0, 1, 4, 16, 64, 256)))),
}


_KNOBS_OF = {  # engines that refuse a prompt that does not fit one iteration
    "inflight": {"max_num_batched_tokens": st.sampled_from((16, 64, 256))},
    "token_budget": {"max_num_batched_tokens": st.sampled_from((16, 64, 256))},
}
_OPTIONS = {
    "order": st.sampled_from(("fcfs", "priority", "shortest_job_first")),
    "max_num_queued_reqs": st.sampled_from((None, None, 0, 2, 5)),
    "long_prefill_token_threshold": st.sampled_from((0, 0, 1, 3, 7)),
    "max_num_partial_prefills": st.sampled_from((None, None, 1, 2)),
    "max_long_partial_prefills": st.sampled_from((None, None, 1)),
    "scheduler_reserve_full_isl": st.booleans(),
    "watermark": st.sampled_from((0.0, 0.0, 0.1, 0.5)),
    "capacity_policy": st.sampled_from(("guaranteed_no_evict", "max_utilization")),
    "chunked_context": st.booleans(),
    "unified": st.booleans(),
    "max_prefill_tokens": st.sampled_from((2, 8, 64)),
    "mixed_chunk": st.booleans(),
    "schedule_conservativeness": st.sampled_from((0.1, 1.0, 2.0)),
    "clip_max_new_tokens": st.sampled_from((3, 4096)),
    "longest_prefix_match": st.booleans(),
    "chunked_prefill": st.booleans(),
    "max_input_tokens": st.sampled_from((None, None, 3, 40)),
    "max_batch_total_tokens": st.sampled_from((None, 40, 200)),
    "waiting_served_ratio": st.sampled_from((0.0, 0.3, 1.2)),
    "max_waiting_tokens": st.sampled_from((1, 3, 20)),
    "max_concurrent_requests": st.sampled_from((None, 3, 128)),
}


def schedulers(kind: str, *, options: bool = False) -> st.SearchStrategy[Scheduler]:
    """Engines of that *kind*, most of them narrow, with or without *options* beyond the rules of the iteration."""
    policy = kinds_of("sim.scheduler", Scheduler)[kind]
    knobs = _KNOBS | _KNOBS_OF.get(kind, {}) | (_OPTIONS if options else {})
    return st.builds(policy, **{name: knob for name, knob in knobs.items() if name in policy.model_fields})


@st.composite
def prompts(draw: Callable[..., Any], block_size: int) -> tuple[int, tuple[tuple[str, int], ...]]:
    """Prompts that share segments, along block borders or not, with tokens of their own behind them or not."""
    lengths = st.one_of(st.integers(1, 3).map(lambda blocks: blocks * block_size), st.integers(1, 3 * block_size))
    names = draw(st.sampled_from(((), ("a",), ("a",), ("a", "b"), ("a", "c"), ("b", "c"))))
    segments = tuple((name, draw(lengths)) for name in names)
    own = draw(st.integers(0 if segments else 1, 3 * block_size))
    return sum(tokens for _, tokens in segments) + own, segments


@st.composite
def workloads(draw: Callable[..., Any], block_size: int, *, longest: int, sessions: bool) -> tuple[Ask, ...]:
    """Up to 12 requests; with *sessions* some prompts begin with an earlier one and its answer, after it has ended."""
    asks: list[Ask] = []
    arrival_s = draw(st.sampled_from((0.0, 0.25)))
    for index in range(draw(st.integers(1, 12))):
        arrival_s += draw(st.one_of(st.just(0.0), st.just(TICK_S), ticks))
        tokens, segments = draw(prompts(block_size))
        named = [ask for ask in asks if sum(length for _, length in ask.segments) == ask.input_tokens]
        if sessions and named and draw(st.booleans()):
            before = draw(st.sampled_from(named))
            arrival_s += LATER_S
            segments = (*before.segments, (str(before.output_segment), before.output_tokens), *segments)
            tokens += before.total_tokens
        output = draw(st.one_of(st.sampled_from((1, 2)), st.integers(1, longest)))
        asks.append(Ask(arrival_s, tokens, output, segments, f"answer {index}"))
    return tuple(asks)


def drafts() -> st.SearchStrategy[Acceptance]:
    """What is accepted of drafts of one to four tokens."""
    shares = st.lists(st.sampled_from((0.0, 0.2, 0.5, 0.9, 1.0)), min_size=1, max_size=4)
    return st.builds(Acceptance, shares.map(lambda rates: tuple(sorted(rates, reverse=True))), st.integers(0, 99))


@st.composite
def several_tables(draw: Callable[..., Any], block_size: int, longest_chunk: float) -> Pages:
    """Block tables with and without windows; at least one keeps every token."""
    tables = st.builds(
        WindowTables,
        st.integers(1, 3),
        st.sampled_from((1, 2, 5, 8, 20, 64)),
        st.sampled_from((1, 2, block_size, 3 * block_size)),
        st.booleans(),
    )
    windows = tuple(draw(st.lists(tables, min_size=1, max_size=2)))
    return Pages(block_size, draw(st.integers(1, 2)), windows, draw(st.integers(0, 2)), longest_chunk)


def roomy(scheduler: Scheduler, tokens: int) -> Scheduler:
    """Return *scheduler* with a budget of at least *tokens*, without which no draft would ever be verified."""
    budget = getattr(scheduler, "max_num_batched_tokens", tokens)
    return scheduler if budget >= tokens else scheduler.model_copy(update={"max_num_batched_tokens": tokens})


@st.composite
def cases(
    draw: Callable[..., Any],
    kind: str,
    *,
    longest: int = 40,
    options: bool = False,
    speculative: bool = False,
    hybrid: bool = False,
    tiered: bool = False,
    swapping: bool = False,
) -> Case:
    """Engines of a *kind* of scheduler with pools from too small for some request to ample.

    With *options*, requests have priorities, clients little patience and engines time-outs, too. *speculative* ones
    verify drafts; *hybrid* engines have several block tables a sequence, *tiered*
    ones keep blocks elsewhere, too.
    """
    block_size = draw(st.sampled_from((1, 4, 4, 16)))
    prefix_caching = draw(st.sampled_from((True, True, False)))
    cache_generated = prefix_caching and draw(st.booleans())
    asks = draw(workloads(block_size, longest=longest, sessions=cache_generated))
    longest_blocks = max(-(-ask.total_tokens // block_size) for ask in asks)
    acceptances = draw(drafts()) if speculative else None
    num_blocks = longest_blocks + draw(st.one_of(st.integers(-2, 3), st.integers(0, 2 * longest_blocks)))
    case = Case(
        draw(schedulers(kind, options=options)), max(num_blocks, 1), block_size, asks, prefix_caching, cache_generated
    )
    if acceptances is not None:
        case = replace(case, scheduler=roomy(case.scheduler, acceptances.tokens_each), acceptances=acceptances)
    if hybrid:
        pages = draw(several_tables(block_size, case.scheduler.longest_chunk))
        most = max(pages.most(ask.total_tokens + (acceptances.tokens_each if acceptances else 0)) for ask in asks)
        case = replace(case, pages=pages, num_blocks=max(most + draw(st.integers(-2, most)), 1))
    if tiered:
        tier = st.builds(Tier, st.sampled_from((1, 3, 8, 50)), st.sampled_from((0.0, 2**-6)))
        tiers = st.lists(tier, min_size=1, max_size=2)
        write = draw(st.sampled_from(("write_through", "write_back")))
        case = replace(case, prefix_caching=True, tiers=tuple(draw(tiers)), write=write)
    if swapping:
        scheduler = case.scheduler.model_copy(update={"preemption_mode": "swap"})
        case = replace(case, scheduler=scheduler, swap=Tier(draw(st.sampled_from((1, 5, 100))), 2**-7))
    if not options:
        return case
    patience_s = st.sampled_from((math.inf, math.inf, 0.25, 1.0, 1.5 + TICK_S / 4))
    demand = st.fixed_dictionaries({"priority": st.integers(0, 2), "patience_s": patience_s})
    demands = draw(st.lists(demand, min_size=len(asks), max_size=len(asks)))
    limits_s = st.sampled_from((math.inf, math.inf, math.inf, 0.5, 2.0))
    timeouts = Timeouts(draw(limits_s), draw(limits_s))
    return replace(case, demands=tuple(demands), timeouts=timeouts, partial_blocks=draw(st.booleans()))
