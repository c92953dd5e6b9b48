"""The program against the naive engine of `iteration_oracle`, request by request, exactly."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from iteration_oracle import Job, Rules, Table, Tables, simulate
from serving import COSTS, Ask, Case, cases, fate, random_runs, schedulers, serve

from sim.policy import kinds_of
from sim.scheduler import Scheduler
from sim.scheduler.chunked_prefill import ChunkedPrefill
from sim.scheduler.continuous import Continuous
from sim.speculation import Acceptance

KINDS = ("chunked_prefill", "continuous", "static")


def judged(case: Case) -> list[tuple]:
    """What becomes of the requests of *case* by the naive engine, in the form of `fate`."""
    jobs = [Job(index, **dataclasses.asdict(ask)) for index, ask in enumerate(case.asks)]
    drafts = case.acceptances
    for job in jobs if drafts else ():
        job.accepted = tuple((drafts.emitted(job.index, job.output_tokens) - 1).tolist())
    names = {field.name for field in dataclasses.fields(Rules)}
    policy = case.scheduler.model_dump(include=names, exclude_none=True)
    rules = Rules(
        **policy,
        num_blocks=case.num_blocks,
        block_size=case.block_size,
        prefix_caching=case.prefix_caching,
        cache_generated=case.cache_generated,
        draft_tokens=drafts.tokens_each - 1 if drafts else 0,
        tiers=tuple((tier.blocks, tier.block_s) for tier in case.tiers) if case.prefix_caching else (),
        write_through=case.write == "write_through",
        swap=(case.swap.blocks, case.swap.block_s) if case.swap else (0, 0.0),
        **COSTS,
    )
    simulate(jobs, rules, tables_of(case, rules))
    return [
        (
            job.status,
            *(None if time != time else time for time in (job.admitted_s, job.first_token_s, job.last_token_s)),
            job.preemptions,
            job.cached_tokens,
        )
        for job in jobs
    ]


def tables_of(case: Case, rules: Rules) -> Tables | None:
    pages = case.pages
    if pages is None:
        return None
    tables = [Table(pages.block_size)] * pages.full
    for each in pages.windows:
        tables += [Table(each.block_size, each.tokens, each.chunked)] * each.tables
    return Tables(rules, tables, pages.states)


def agrees(case: Case) -> None:
    expected = judged(case)
    for by_iteration in (True, False):
        requests, _ = serve(case, by_iteration=by_iteration)
        assert [fate(request) for request in requests] == expected


def test_the_naive_engine_knows_these_schedulers():
    assert set(KINDS) <= set(kinds_of("sim.scheduler", Scheduler))


@pytest.mark.parametrize("kind", KINDS)
def test_every_request_as_the_naive_engine_says(kind):
    @random_runs(200)
    @given(cases(kind))
    def check(case):
        agrees(case)

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_drafts_are_verified_as_the_naive_engine_says(kind):
    @random_runs(40)
    @given(cases(kind, speculative=True))
    def check(case):
        agrees(case)

    check()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("speculative", [False, True], ids=["one token", "drafts"])
def test_windows_free_their_blocks_as_the_naive_engine_says(kind, speculative):
    @random_runs(25)
    @given(cases(kind, speculative=speculative, hybrid=True))
    def check(case):
        agrees(replace(case, prefix_caching=False, cache_generated=False))

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_come_back_from_tiers_as_the_naive_engine_says(kind):
    @random_runs(40)
    @given(cases(kind, tiered=True))
    def check(case):
        agrees(case)

    check()


@random_runs(60)
@given(cases("continuous", swapping=True), st.booleans())
def test_who_is_preempted_waits_in_the_memory_of_the_host_as_the_naive_engine_says(case, drafts):
    agrees(replace(case, acceptances=Acceptance((0.7, 0.4)) if drafts else None))


@st.composite
def storms(draw):
    """Bursts that share a prefix, in a pool where they preempt each other all the time."""
    size = draw(st.sampled_from((1, 2, 4)))
    asks, arrival_s = [], 0.0
    for _ in range(draw(st.integers(3, 9))):
        arrival_s += draw(st.sampled_from((0.0, 0.0, 0.0, 1 / 16, 1.0)))
        shared = draw(st.integers(1, 5)) * size
        own = draw(st.integers(0, 5 * size))
        asks.append(Ask(arrival_s, shared + own, draw(st.integers(1, 15 * size)), (("a", shared),)))
    blocks = max(-(-ask.total_tokens // size) for ask in asks)
    kind = draw(st.sampled_from(("chunked_prefill", "chunked_prefill", "continuous")))
    return Case(draw(schedulers(kind)), blocks + draw(st.integers(0, blocks)), size, tuple(asks), prefix_caching=True)


@random_runs(250)
@given(storms())
def test_preemption_storms_over_a_shared_prefix(case):
    agrees(case)


@st.composite
def early_turns(draw):
    """Prompts that hold answers which are still being written, in a pool where nothing is evicted."""
    size = draw(st.sampled_from((1, 2, 4)))
    asks = [Ask(0.0, 2 * size, draw(st.integers(1, 8 * size)), (("a", 2 * size),), "first")]
    arrival_s = 0.0
    for index in range(draw(st.integers(1, 6))):
        arrival_s += draw(st.integers(0, 12)) / 64
        before = draw(st.sampled_from(asks))
        answer = (str(before.output_segment), draw(st.integers(1, before.output_tokens)))
        segments = (*before.segments, answer)
        tokens = before.input_tokens + answer[1]
        asks.append(Ask(arrival_s, tokens, draw(st.integers(1, 8 * size)), segments, f"answer {index}"))
    blocks = sum(-(-ask.total_tokens // size) for ask in asks)
    scheduler = draw(st.sampled_from(("chunked_prefill", "continuous")).flatmap(schedulers))
    return Case(scheduler, blocks, size, tuple(asks), prefix_caching=True, cache_generated=True)


@random_runs(200)
@given(early_turns())
def test_answers_that_are_hit_while_they_are_written(case):
    agrees(case)


def test_a_head_that_lacks_blocks_until_its_first_hit_is_evicted():
    """Its hits were freed first block first, so evicting that one sets the rest free for its chunk."""
    asks = (
        Ask(0.0, 6, 1, (("a", 6),)),
        Ask(0.0, 10, 18, (("a", 10),)),
        Ask(0.0, 8, 20, (("a", 2), ("b", 6))),
        Ask(0.0625, 18, 2, (("a", 8),)),
    )
    agrees(Case(ChunkedPrefill(max_num_batched_tokens=5, max_num_seqs=3), 20, 2, asks, prefix_caching=True))


def test_own_blocks_recomputed_in_chunks_while_the_first_copies_are_idle():
    """Preempted in mid-prompt and resumed without a hit: the copies stay unkeyed though the first are evicted then."""
    asks = (
        Ask(0.0, 15, 67, (("a", 8), ("c", 7))),
        Ask(0.0, 17, 39, (("a", 12),)),
        Ask(1.125, 16, 14, (("a", 4), ("b", 4))),
        Ask(1.125, 20, 1, (("a", 20),)),
        Ask(1.125, 32, 4, (("a", 20),)),
    )
    agrees(Case(ChunkedPrefill(max_num_batched_tokens=6, max_num_seqs=4), 32, 4, asks, prefix_caching=True))


def test_an_answer_that_fills_a_block_makes_room_for_the_head_within_a_stride():
    """The head lacks one of 12 blocks: 3 are in use, of which it hits 2. It gets it when the third is full."""
    asks = (
        Ask(0.0, 8, 10, (("a", 8),), "first"),
        Ask(0.09375, 45, 1, (("a", 8), ("first", 37)), "second"),
    )
    scheduler = Continuous(max_num_batched_tokens=1, max_num_seqs=2)
    agrees(Case(scheduler, 12, 4, asks, prefix_caching=True, cache_generated=True))
