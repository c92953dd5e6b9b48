"""Every rule of "The iteration, exactly", fine print included, as a case computed by hand.

Unless a case says otherwise an iteration takes 1 s, so that times count iterations, and a KV block holds 4 tokens.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from serving import Ask, Case, Closed, serve

from sim.cost import Affine
from sim.metrics.rows import RequestRows
from sim.request import Status
from sim.scheduler.chunked_prefill import ChunkedPrefill
from sim.scheduler.continuous import Continuous
from sim.scheduler.static import Static

SECOND = Affine(base_s=1.0)
LINE = Affine(base_s=1.0, per_token_s=1 / 2, per_context_token_s=1 / 4, per_seq_s=1 / 8)
SHORT = Ask(0.0, 4, 1)
"""Enough of a neighbour to take part in one iteration."""


def play(scheduler, *asks, blocks=100, caching=False, generated=False, cost=SECOND, closed=None):
    """Return the requests and the strides of *asks*, each an `Ask` or its fields."""
    workload = tuple(ask if isinstance(ask, Ask) else Ask(*ask) for ask in asks)
    case = Case(scheduler, blocks, 4, workload, caching or generated, generated)
    return serve(case, cost=cost.build(), closed=closed)


def times(requests, *names):
    return [tuple(getattr(request, name) for name in names) for request in requests]


class TestTime:
    def test_an_arrival_during_an_iteration_is_seen_at_the_next_boundary(self):
        # Iterations of A: 0-1, 1-2, 2-3. B comes in the first.
        _, b = play(ChunkedPrefill(), (0.0, 4, 3), (0.5, 4, 1))[0]
        assert (b.admitted_s, b.first_token_s) == (1.0, 2.0)

    def test_an_arrival_at_a_boundary_is_seen_there(self):
        _, b = play(ChunkedPrefill(), (0.0, 4, 3), (1.0, 4, 1))[0]
        assert (b.admitted_s, b.first_token_s) == (1.0, 2.0)

    def test_an_arrival_far_inside_a_stride_cuts_it_at_the_next_boundary(self):
        # A decodes from 1 s on, an iteration a second, alone; B comes in the eleventh iteration.
        a, b = play(ChunkedPrefill(), (0.0, 4, 100), (10.5, 4, 1))[0]
        assert (b.admitted_s, b.first_token_s, a.last_token_s) == (11.0, 12.0, 100.0)

    def test_an_idle_replica_starts_at_the_arrival_and_sees_all_of_that_instant(self):
        requests, _ = play(ChunkedPrefill(), (2.25, 4, 1), (2.25, 4, 1))
        assert times(requests, "admitted_s", "last_token_s") == [(2.25, 3.25)] * 2


class TestBudget:
    def test_running_first_in_admission_order_then_those_who_wait(self):
        # Budget 4, tokens of A (3), B (6), C (5) by iteration:
        #   1: A 3, B 1     2: A 1, B 3     3: A 1, B 2, C 1     4: A 1, B 1, C 2     5: A 1, B 1, C 2
        a, b, c = play(ChunkedPrefill(max_num_batched_tokens=4), (0.0, 3, 9), (0.0, 6, 9), (0.0, 5, 9))[0]
        assert times((a, b, c), "admitted_s", "first_token_s") == [(0.0, 1.0), (0.0, 3.0), (2.0, 5.0)]

    def test_max_num_seqs(self):
        a, b = play(ChunkedPrefill(max_num_seqs=1), (0.0, 4, 3), (0.0, 4, 1))[0]
        assert (a.last_token_s, b.admitted_s) == (3.0, 3.0)

    def test_blocks_for_this_iterations_tokens_suffice(self):
        # 3 blocks, budget 10. A's 8 prompt tokens take 2; 2 tokens of B take the third, though its prompt needs 2.
        b = play(ChunkedPrefill(max_num_batched_tokens=10), (0.0, 8, 4), (0.0, 8, 1), blocks=3)[0][1]
        assert b.admitted_s == 0.0

    def test_a_chunk_never_shrinks_for_lack_of_blocks(self):
        # 3 blocks, budget 16. The whole prompt of B is within the budget and needs 2; 1 is free until A ends at 4.
        a, b = play(ChunkedPrefill(max_num_batched_tokens=16), (0.0, 8, 4), (0.0, 8, 1), blocks=3)[0]
        assert (a.last_token_s, b.admitted_s, b.first_token_s) == (4.0, 4.0, 5.0)

    def test_nobody_overtakes_the_head(self):
        # As before; C would fit the third block, but stands behind B.
        _, b, c = play(ChunkedPrefill(), (0.0, 8, 4), (0.0, 8, 1), (0.0, 4, 1), blocks=3)[0]
        assert (b.admitted_s, c.admitted_s) == (4.0, 4.0)

    def test_first_come_is_by_arrival_and_then_by_place_in_the_file(self):
        requests, _ = play(ChunkedPrefill(max_num_seqs=1), SHORT, SHORT, SHORT)
        assert [request.first_token_s for request in requests] == [1.0, 2.0, 3.0]


class TestPreemption:
    def test_the_last_admitted_gives_way(self):
        # 3 blocks, budget 10. At 1 s A needs the block of B, which has computed 2 tokens; B starts over at A's end.
        a, b = play(ChunkedPrefill(max_num_batched_tokens=10), (0.0, 8, 4), (0.0, 8, 1), blocks=3)[0]
        assert (a.last_token_s, a.preemptions) == (4.0, 0)
        assert (b.preemptions, b.admitted_s, b.first_token_s) == (1, 0.0, 5.0)

    # 3 blocks; A and B hold one each, and at 1 s need a second: A gets it, B preempts itself, its first token emitted.
    # A ends at 3. Then B computes its 4 + 1 tokens in one prefill that emits its second at 4; the third comes at 5.
    PAIR = (Ask(0.0, 4, 3), Ask(0.0, 4, 3))

    def test_itself_if_it_is_the_last(self):
        a, b = play(ChunkedPrefill(), *self.PAIR, blocks=3)[0]
        assert (a.preemptions, b.preemptions, b.first_token_s, b.last_token_s) == (0, 1, 1.0, 5.0)

    def test_prompt_and_emitted_tokens_are_computed_again_and_that_prefill_emits(self):
        strides = play(ChunkedPrefill(), *self.PAIR, blocks=3)[1]
        assert strides.start_s.tolist() == [0, 1, 2, 3, 4]
        assert strides.prefill_tokens.tolist() == [8, 0, 0, 5, 0]
        assert strides.preempted.tolist() == [0, 1, 0, 0, 0]
        assert strides.odd_gaps_s.tolist() == [3.0]  # of B, from its first token to its second

    def test_no_admission_in_an_iteration_that_preempted_and_the_preempted_waits_in_front(self):
        # At 1 s C could have the block of B. It may not then, nor at 2, since B is in front of it and needs 2 blocks.
        c = play(ChunkedPrefill(), *self.PAIR, (0.5, 4, 1), blocks=3)[0][2]
        assert c.admitted_s == 3.0

    def test_of_several_the_earliest_admitted_is_in_front(self):
        # 4 blocks, 4 requests with one each. At 1 s A takes the block of D, then B that of C. C is in front of D:
        # when A ends at 3, C comes back and emits its last token at 4; then D, at 5.
        requests, _ = play(ChunkedPrefill(), (0.0, 4, 3), (0.0, 4, 5), (0.0, 4, 2), (0.0, 4, 2), blocks=4)
        assert times(requests, "preemptions", "last_token_s") == [(0, 3.0), (0, 5.0), (1, 4.0), (1, 5.0)]

    def test_the_resumed_is_last_in_admission_order(self):
        # 4 blocks; B decodes alone until A comes at 3 with 4 tokens: blocks A 1, B 2. At 4 A takes the fourth; at 5 B,
        # with 8 tokens, needs a third: A is the last admitted and goes. It comes back when B has ended, at 9, and not
        # before, since B holds 3 blocks, and its 4 + 2 tokens need 2. Its third token is emitted at 10.
        b, a = play(ChunkedPrefill(), (0.0, 4, 9), (3.0, 4, 3), blocks=4)[0]
        assert (b.last_token_s, b.preemptions) == (9.0, 0)
        assert (a.first_token_s, a.preemptions, a.last_token_s) == (4.0, 1, 10.0)

    def test_blocks_are_held_for_at_most_all_but_the_last_token(self):
        # 4 + 5 tokens; the last one emitted is not computed, so 8 are: 2 blocks.
        assert play(ChunkedPrefill(), (0.0, 4, 5))[1].kv_blocks.max() == 2

    def test_all_blocks_are_usable(self):
        # 4 + 4 tokens in a pool of 2 blocks.
        (a,), strides = play(ChunkedPrefill(), (0.0, 4, 4), blocks=2)
        assert (a.last_token_s, strides.kv_blocks.max()) == (4.0, 2)


@pytest.mark.parametrize("scheduler", [ChunkedPrefill(), Continuous(), Static(batch_size=1)], ids=lambda s: s.kind)
def test_what_could_never_fit_is_rejected_at_arrival(scheduler):
    # 3 blocks: 8 + 4 tokens fit. 8 + 5 need 4 blocks and are refused, though the 12 that would be computed fit.
    (fits, refused, after), _ = play(scheduler, (0.0, 8, 4), (0.5, 8, 5), (6.0, 4, 1), blocks=3)
    assert (fits.status, fits.last_token_s) == (Status.COMPLETED, 4.0)
    assert (refused.status, refused.reason) == (Status.REJECTED, "4 KV blocks needed, the pool has 3")
    assert math.isnan(refused.admitted_s)
    assert after.status is Status.COMPLETED


class TestEmission:
    def test_the_first_token_comes_with_the_last_of_the_prompt(self):
        # 10 prompt tokens in chunks of 4, 4 and 2, from 0.5 s on.
        requests, _ = play(ChunkedPrefill(max_num_batched_tokens=4), (0.5, 10, 3))
        rows = RequestRows.of(requests)
        assert (rows.ttft_s[0], rows.e2e_s[0], rows.tpot_s[0]) == (3.0, 5.0, 1.0)

    def test_one_token_ends_with_the_prompt(self):
        rows = RequestRows.of(play(ChunkedPrefill(), (0.5, 10, 1))[0])
        assert rows.ttft_s[0] == rows.e2e_s[0] == 1.0
        assert np.isnan(rows.tpot_s[0])


class TestAffineCost:
    def test_prompt_and_decode(self):
        # Prefill of 4: 1 + 4/2 + 4/4 + 1/8 = 4.125. First decode, context 5: 1 + 1/2 + 5/4 + 1/8 = 2.875.
        (a,), _ = play(ChunkedPrefill(), (0.0, 4, 2), cost=LINE)
        assert (a.first_token_s, a.last_token_s) == (4.125, 7.0)

    def test_a_chunk_counts_its_past_once(self):
        # 4 of 6: 1 + 4/2 + 4/4 + 1/8 = 4.125; 2 on a past of 4: 1 + 2/2 + 6/4 + 1/8 = 3.625.
        (a,), _ = play(ChunkedPrefill(max_num_batched_tokens=4), (0.0, 6, 1), cost=LINE)
        assert a.first_token_s == 7.75

    def test_decodes_and_chunks_of_one_iteration_add_up(self):
        # 0-4.125: A alone. Then A with context 5 and the 4 of B: 1 + 5/2 + 9/4 + 2/8 = 6.
        a, b = play(ChunkedPrefill(), (0.0, 4, 2), (1.0, 4, 1), cost=LINE)[0]
        assert a.last_token_s == b.first_token_s == 10.125

    def test_cached_tokens_count_as_past(self):
        # A ends before 20. B hits 8 of its 10 tokens: 1 + 2/2 + 10/4 + 1/8 = 4.625.
        asks = [Ask(arrival_s, 10, 1, (("a", 10),)) for arrival_s in (0.0, 20.0)]
        _, b = play(ChunkedPrefill(), *asks, caching=True, cost=LINE)[0]
        assert (b.cached_tokens, b.first_token_s) == (8, 24.625)

    def test_padding_adds_to_the_sequences_only(self):
        # Prefill of 4 + 4: 1 + 8/2 + 8/4 + 2/8 = 7.25. Then A pads, B has context 5: 1 + 1/2 + 5/4 + 2/8 = 3.
        a, b = play(Static(batch_size=2), (0.0, 4, 1), (0.0, 4, 2), cost=LINE)[0]
        assert (a.last_token_s, b.last_token_s) == (7.25, 10.25)


class TestContinuous:
    def test_a_prefill_only_iteration_whenever_somebody_can_be_admitted(self):
        # 0-1 A's prompt; 1-2 B's prompt alone; 2-3 both decode and B ends; 3-4, 4-5 A.
        a, b = play(Continuous(), (0.0, 4, 4), (0.5, 4, 2))[0]
        assert times((a, b), "first_token_s", "last_token_s") == [(1.0, 5.0), (2.0, 3.0)]

    def test_prompts_within_the_budget_go_together(self):
        requests, _ = play(Continuous(max_num_batched_tokens=8), SHORT, SHORT, SHORT)
        assert [request.admitted_s for request in requests] == [0.0, 0.0, 1.0]

    def test_a_longer_prompt_runs_alone_and_is_not_overtaken(self):
        requests, _ = play(Continuous(max_num_batched_tokens=8), SHORT, (0.0, 20, 1), SHORT)
        assert times(requests, "admitted_s", "first_token_s") == [(0.0, 1.0), (1.0, 2.0), (2.0, 3.0)]

    def test_cached_tokens_leave_the_budget_alone(self):
        # From 2 s on: B computes 4 of its 12 tokens, so that C's 4 fit the budget of 8.
        first, again = Ask(0.0, 8, 1, (("a", 8),)), Ask(2.0, 12, 1, (("a", 8),))
        _, b, c = play(Continuous(max_num_batched_tokens=8), first, again, (2.0, 4, 1), caching=True)[0]
        assert (b.admitted_s, c.admitted_s) == (2.0, 2.0)

    def test_whole_prompts_need_all_their_blocks(self):
        # 3 blocks, of which A holds 2 and later 3: B, with 8 tokens, waits for its end.
        a, b = play(Continuous(max_num_batched_tokens=4), (0.0, 8, 4), (0.0, 8, 1), blocks=3)[0]
        assert (a.last_token_s, b.admitted_s) == (4.0, 4.0)

    def test_one_decode_iteration_for_all_whatever_the_budget(self):
        # Budget 1: the prompts one by one until 3; then everybody decodes.
        requests, _ = play(Continuous(max_num_batched_tokens=1), *[(0.0, 1, 2)] * 3)
        assert [request.last_token_s for request in requests] == [4.0] * 3

    def test_preemption(self):
        # 0-1 both prompts. 1-2: A takes the third block, B preempts itself. 2-3: B needs 2 blocks and one is free, so A
        # decodes and ends. 3-4: B computes 4 + 1 tokens, emits its second; 4-5 its third.
        a, b = play(Continuous(), *TestPreemption.PAIR, blocks=3)[0]
        assert times((a, b), "preemptions", "last_token_s") == [(0, 3.0), (1, 5.0)]

    def test_no_admission_in_a_decode_iteration_that_preempted(self):
        # As before. C comes at 1.5 and is seen at 2; it would fit, but B is in front of it. B takes 2 of 3 blocks at 3.
        c = play(Continuous(), *TestPreemption.PAIR, (1.5, 4, 1), blocks=3)[0][2]
        assert c.admitted_s == 3.0


class TestStatic:
    def test_it_waits_for_a_full_batch(self):
        requests, _ = play(Static(batch_size=2), (0.0, 4, 1), (3.0, 4, 1), (9.0, 4, 1))
        assert [request.admitted_s for request in requests] == [3.0, 3.0, 9.0]

    def test_or_until_the_first_has_waited_for_long_enough(self):
        a, b, _ = play(Static(batch_size=3, max_wait_s=2.0), (0.0, 4, 1), (1.0, 4, 1), (9.0, 4, 1))[0]
        assert (a.admitted_s, b.admitted_s) == (2.0, 2.0)

    def test_an_arrival_at_that_very_instant_joins(self):
        a, b, _ = play(Static(batch_size=3, max_wait_s=2.0), (0.0, 4, 1), (2.0, 4, 1), (9.0, 4, 1))[0]
        assert (a.admitted_s, b.admitted_s) == (2.0, 2.0)

    def test_the_wait_is_that_of_the_first_who_waits_now(self):
        # A runs 0-4 alone, since nobody came until 1. B and C wait since 1.5 and 3: until 5.5, as D is still to come.
        asks = ((0.0, 4, 4), (1.5, 4, 1), (3.0, 4, 1), (20.0, 4, 1))
        requests, _ = play(Static(batch_size=8, max_wait_s=4.0), *asks)
        assert [request.admitted_s for request in requests] == [4.0, 4.0, 4.0, 20.0]

    def test_or_until_none_is_to_come(self):
        requests, _ = play(Static(batch_size=4), (0.0, 4, 1), (1.0, 4, 1))
        assert [request.admitted_s for request in requests] == [1.0, 1.0]

    def test_one_that_is_refused_is_to_come_until_it_has(self):
        a, refused = play(Static(batch_size=4), (0.0, 4, 1), (1.0, 400, 1), blocks=3)[0]
        assert (a.admitted_s, refused.status) == (1.0, Status.REJECTED)

    def test_a_closed_loop_smaller_than_the_batch_does_not_hang(self):
        # One slot: whenever its request waits, no arrival is scheduled. Pauses of 0.5 s between 2 s of service.
        closed = Closed((0.0,), (0.5,) * 3, (0, 1, 2))
        requests, _ = play(Static(batch_size=4), *[(0.0, 4, 2)] * 3, closed=closed)
        assert times(requests, "arrival_s", "admitted_s") == [(0.0, 0.0), (2.5, 2.5), (5.0, 5.0)]

    def test_prefill_together_then_decode_until_the_longest_is_done(self):
        # A and B 0-4. C comes at once after them, and is not let in before the batch is over.
        a, b, c = play(Static(batch_size=2), (0.0, 4, 2), (0.0, 4, 4), (0.5, 4, 1))[0]
        assert (a.last_token_s, b.last_token_s, c.admitted_s) == (2.0, 4.0, 4.0)

    def test_finished_rows_hold_their_blocks_to_the_end(self):
        # A keeps the block of its 4 tokens. B ends with 4 + 5 computed: 3 blocks.
        strides = play(Static(batch_size=2), (0.0, 4, 1), (0.0, 4, 6))[1]
        assert strides.kv_blocks[-1] == 1 + 3

    def test_the_batch_is_cut_by_full_lengths_and_never_preempts(self):
        # 8 blocks: 4 + 5 tokens count as 3 blocks, though only 8 are ever computed; so 2 of 3 go, the third after 5 s.
        requests, _ = play(Static(batch_size=3), *[(0.0, 4, 5)] * 3, blocks=8)
        assert times(requests, "admitted_s", "preemptions") == [(0.0, 0), (0.0, 0), (5.0, 0)]
        # 4 + 4 tokens count as 2 blocks: all 3 go.
        requests, _ = play(Static(batch_size=3), *[(0.0, 4, 4)] * 3, blocks=8)
        assert [request.admitted_s for request in requests] == [0.0] * 3


def hits(*asks, **engine):
    """Return the cached tokens of each request."""
    requests, _ = play(engine.pop("scheduler", ChunkedPrefill()), *asks, **({"caching": True} | engine))
    return [request.cached_tokens for request in requests]


class TestPrefixCaching:
    A8, A10, A12 = ((("a", tokens),) for tokens in (8, 10, 12))

    def test_only_full_blocks(self):
        # 10 tokens fill 2 blocks.
        assert hits((0.0, 10, 1, self.A10), (2.0, 12, 1, self.A12)) == [0, 8]

    def test_only_blocks_of_the_prompt(self):
        # The second block of A holds 2 tokens of its answer: it is not keyed.
        asks = (Ask(0.0, 6, 7, (("a", 6),), "x"), Ask(9.0, 16, 1, (("a", 6), ("x", 7))))
        assert hits(*asks) == [0, 4]

    def test_by_the_chain_of_segments(self):
        # "b" behind "c" is other content than behind "a".
        ab, cb, ac = ((("a", 4), ("b", 8)), (("c", 4), ("b", 8)), (("a", 4), ("c", 8)))
        assert hits((0.0, 12, 1, ab), (2.0, 12, 1, cb), (4.0, 12, 1, ac), (6.0, 12, 1, ab)) == [0, 0, 4, 8]

    def test_content_is_the_segment_and_the_offset_in_it(self):
        # 4 + 8 tokens share 6 with 4 + 6, and so the first 2 blocks; a border between segments falls within a block.
        one, other = (("a", 2), ("b", 10)), (("a", 2), ("b", 7), ("c", 3))
        assert hits((0.0, 12, 1, one), (2.0, 12, 1, other)) == [0, 8]
        # The same names in pieces of other lengths are other tokens from there on: (a, 0) follows (a, 3), not (a, 4).
        assert hits((0.0, 9, 1, (("a", 9),)), (2.0, 9, 1, (("a", 4), ("a", 5)))) == [0, 4]

    def test_tokens_outside_segments_are_the_requests_own(self):
        assert hits((0.0, 12, 1), (2.0, 12, 1), (4.0, 12, 1, (("a", 4),)), (6.0, 12, 1, (("a", 4),))) == [0, 0, 0, 4]

    def test_at_most_the_blocks_before_the_last_prompt_token(self):
        # floor((8 - 1) / 4) = 1, floor((9 - 1) / 4) = 2.
        assert hits((0.0, 8, 1, self.A8), (2.0, 8, 1, self.A8), (4.0, 9, 1, self.A8)) == [0, 4, 8]

    def test_from_the_end_of_the_iteration_that_computed_it(self):
        # B is admitted in the same iteration, C in the next.
        asks = ((0.0, 12, 9, self.A12), (0.0, 12, 9, self.A12), (0.5, 12, 1, self.A12))
        assert hits(*asks) == [0, 0, 8]

    def test_also_before_the_prompt_is_complete(self):
        # Budget 8: A computes 8 of 12 tokens until 1 s; then its last 4, and B with the rest of the budget.
        scheduler = ChunkedPrefill(max_num_batched_tokens=8)
        assert hits((0.0, 12, 1, self.A12), (0.5, 12, 1, self.A12), scheduler=scheduler) == [0, 8]

    def test_looked_up_again_after_a_preemption_and_summed(self):
        # 5 blocks. A and B hold 2 each; at 1 s A takes the fifth and B preempts itself. When A has ended, at 3, B hits
        # floor((8 - 1) / 4) = 1 of the 2 blocks that it left, its own.
        (a, b), _ = play(ChunkedPrefill(), (0.0, 8, 3), (0.0, 8, 3), blocks=5, caching=True)
        assert (a.cached_tokens, b.preemptions, b.cached_tokens) == (0, 1, 4)
        # With a prefix that was cached before, both admissions count: 4 + 4.
        first = Ask(0.0, 4, 1, (("a", 4),))
        pair = (Ask(2.0, 8, 3), Ask(2.0, 8, 3, (("a", 4),)))
        b = play(ChunkedPrefill(), first, *pair, blocks=5, caching=True)[0][2]
        assert (b.preemptions, b.cached_tokens) == (1, 8)

    # From here on: a pool of 8 blocks; X takes blocks for a moment without sharing anything.

    def test_never_keyed_blocks_are_taken_before_any_eviction(self):
        # A leaves 2 keyed blocks and X takes the other 6.
        assert hits((0.0, 8, 1, self.A8), (2.0, 23, 1), (4.0, 12, 1, self.A8), blocks=8)[2] == 8

    def test_of_one_sequence_the_later_blocks_are_evicted_first(self):
        # X takes 7: of A's keyed blocks the second goes.
        assert hits((0.0, 8, 1, self.A8), (2.0, 27, 1), (4.0, 12, 1, self.A8), blocks=8)[2] == 4

    def test_least_recently_freed_first(self):
        # A and B leave 2 keyed blocks each, A's older. X takes 6: A's go. Then B is there and A is not.
        a, b = self.A8, (("b", 8),)
        asks = ((0.0, 8, 1, a), (2.0, 8, 1, b), (4.0, 23, 1), (6.0, 12, 1, b), (8.0, 12, 1, a))
        assert hits(*asks, blocks=8)[3:] == [8, 0]
        # With a hit in between A's are the younger ones.
        asks = ((0.0, 8, 1, a), (2.0, 8, 1, b), (3.0, 9, 1, a), (4.0, 23, 1), (6.0, 12, 1, a), (8.0, 12, 1, b))
        assert hits(*asks, blocks=8)[4:] == [8, 0]

    def test_those_who_finish_together_free_in_admission_order(self):
        # A and B end at 1; the blocks of A, the first admitted, are the older. X takes 7 of 8: both of A, one of B.
        a, b = self.A8, (("b", 8),)
        asks = ((0.0, 8, 1, a), (0.0, 8, 1, b), (4.0, 27, 1), (6.0, 12, 1, b), (8.0, 12, 1, a))
        assert hits(*asks, blocks=8)[3:] == [4, 0]

    def test_a_duplicate_computed_at_the_same_time_stays_unkeyed(self):
        # A and B compute the same 2 blocks. Of 8 blocks 2 are keyed: X takes 6 and evicts nothing.
        asks = ((0.0, 8, 1, self.A8), (0.0, 8, 1, self.A8), (2.0, 23, 1), (4.0, 12, 1, self.A8))
        assert hits(*asks, blocks=8)[3] == 8
        # The key is that of A, the first admitted. B, who runs until 3, keeps no copy alive: X, at 1.5, evicts the key.
        asks = ((0.0, 8, 1, self.A8), (0.0, 8, 3, self.A8), (1.5, 19, 1), (4.0, 12, 1, self.A8))
        assert hits(*asks, blocks=8)[3] == 0

    def test_answers_where_the_engine_keys_them(self):
        # A computes 4 + 4 of its 4 + 5 tokens: 2 blocks. The next turn starts with both.
        turn = Ask(0.0, 4, 5, (("a", 4),), "x")
        after = Ask(9.0, 12, 1, (("a", 4), ("x", 5)))
        assert hits(turn, after, generated=True) == [0, 8]
        assert hits(turn, after) == [0, 4]

    def test_an_answer_can_be_hit_while_it_is_written(self):
        # At 5 s A has computed 4 + 4 tokens, the fourth of the answer in the iteration that ends then.
        turn = Ask(0.0, 4, 9, (("a", 4),), "x")
        assert [
            hits(turn, Ask(arrival_s, 14, 1, (("a", 4), ("x", 9))), generated=True)[1] for arrival_s in (4.0, 4.5)
        ] == [4, 8]

    def test_with_answers_keyed_the_prompt_still_caps_the_hits(self):
        # 6 blocks; from 5 s on A and B hold 3 each. At 9 s A needs a fourth, and B goes with 4 + 8 tokens computed, 3
        # blocks, all keyed. Its prompt is 4 tokens long, so that it hits floor((4 - 1) / 4) = 0 of them.
        b = play(ChunkedPrefill(), (0.0, 4, 11), (0.0, 4, 11), blocks=6, generated=True)[0][1]
        assert (b.preemptions, b.cached_tokens) == (1, 0)
