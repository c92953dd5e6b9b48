"""Each engine's scheduling by hand: every iteration takes one second, so that times count iterations."""

import math

import pytest
from serving import Ask, Case, serve

from sim.cluster import Timeouts
from sim.cost import Affine
from sim.scheduler.chunked_prefill import ChunkedPrefill
from sim.scheduler.continuous import Continuous
from sim.scheduler.inflight import Inflight
from sim.scheduler.sglang import Sglang
from sim.scheduler.slots import Slots
from sim.scheduler.static import Static
from sim.scheduler.token_budget import TokenBudget

NEVER = Timeouts()
SECOND = Affine(base_s=1, per_token_s=0, per_context_token_s=0, per_seq_s=0).build()


def play(scheduler, *asks, blocks=1000, block_size=1, demands=(), timeouts=NEVER, **more):
    """Serve (arrival, prompt, answer) triples in strides and by iteration, and return the requests."""
    rows = tuple(Ask(*ask) for ask in asks)
    case = Case(scheduler, blocks, block_size, rows, demands=demands, timeouts=timeouts, **more)
    quick, slow = (serve(case, cost=SECOND, by_iteration=single)[0] for single in (False, True))
    for one, other in zip(quick, slow, strict=True):
        assert repr(one) == repr(other)
    return quick


def first_and_last(requests):
    return [(request.first_token_s, request.last_token_s) for request in requests]


class TestSglang:
    def test_a_prompt_holds_up_the_decodes(self):
        asks = (0.0, 4, 4), (1.5, 4, 2)
        assert first_and_last(play(Sglang(), *asks)) == [(1, 5), (3, 4)]
        assert first_and_last(play(Sglang(mixed_chunk=True), *asks)) == [(1, 4), (3, 4)]
        assert first_and_last(play(ChunkedPrefill(), *asks)) == [(1, 4), (3, 4)]

    def test_prompts_are_cut_into_chunks(self):
        (request,) = play(Sglang(max_num_batched_tokens=4), (0.0, 10, 2))
        assert first_and_last([request]) == [(3, 4)]

    def test_a_share_of_the_answers_to_come_is_reserved(self):
        """Of 19 tokens to come of the first, 0.7 are reserved: 14 + 10 computed + 6 of the second + a page > 30."""
        asks = (0.0, 10, 20), (1.0, 3, 3)
        assert play(Sglang(), *asks, blocks=31)[1].admitted_s == 1
        assert play(Sglang(), *asks, blocks=30)[1].admitted_s == 20
        assert play(Sglang(schedule_conservativeness=0.5), *asks, blocks=30)[1].admitted_s == 1

    def test_the_shortest_answer_is_retracted_to_the_end_of_the_queue(self):
        """At 4 s two hold 6 + 2 tokens, at 9 s 18; then the second has emitted 6, the first 8."""
        eager = Sglang(schedule_conservativeness=0.01, max_num_seqs=2)
        asks = (0.0, 4, 14), (2.5, 2, 8), (5.0, 1, 1)
        first, second, third = play(eager, *asks, blocks=18)
        assert (first.preemptions, second.preemptions, third.preemptions) == (0, 1, 0)
        assert first.last_token_s == 15, "one iteration was the second's prompt"
        assert third.admitted_s == 15, "the estimate is now that all of the first's answer comes"
        assert second.last_token_s > third.last_token_s

    def test_the_longest_cached_prefix_may_go_first(self):
        cached, fresh = (("a", 8),), (("b", 8),)
        asks = (0.0, 9, 1, cached), (1.5, 9, 9), (2.0, 9, 1, fresh), (2.0, 9, 1, cached)
        for lpm, order in ((False, [12, 13]), (True, [13, 12])):
            scheduler = Sglang(longest_prefix_match=lpm, max_num_seqs=1)
            requests = play(scheduler, *asks, prefix_caching=True)
            assert [request.first_token_s for request in requests[2:]] == [order[0] - 0.5, order[1] - 0.5]


class TestInflight:
    def test_a_request_is_admitted_if_all_full_lengths_fit(self):
        asks = (0.0, 4, 6), (0.0, 4, 7)
        assert [request.admitted_s for request in play(Inflight(), *asks, blocks=21)] == [0, 0]
        assert [request.admitted_s for request in play(Inflight(), *asks, blocks=20)] == [0, 6]

    def test_or_if_it_fits_now_and_the_last_is_paused_later(self):
        asks = (0.0, 4, 6), (0.0, 4, 7)
        first, second = play(Inflight(capacity_policy="max_utilization"), *asks, blocks=14)
        assert (first.preemptions, second.preemptions) == (0, 1)
        assert (second.admitted_s, first.last_token_s) == (0, 6)

    def test_a_prompt_waits_for_an_iteration_that_has_all_its_tokens(self):
        asks = (0.0, 6, 3), (0.0, 6, 3)
        whole = play(Inflight(max_num_batched_tokens=8), *asks)
        assert [request.first_token_s for request in whole] == [1, 2]
        chunked = play(Inflight(max_num_batched_tokens=8, chunked_context=True), *asks, block_size=2)
        assert [request.first_token_s for request in chunked] == [1, 2]
        (refused,) = play(Inflight(max_num_batched_tokens=8), (0.0, 9, 1))
        assert refused.reason == "prompt of 9 tokens exceeds max_num_batched_tokens 8"

    def test_chunks_are_whole_blocks(self):
        """Of a budget of 7 tokens the first two iterations use 4."""
        scheduler = Inflight(max_num_batched_tokens=7, chunked_context=True)
        (request,) = play(scheduler, (0.0, 14, 1), block_size=4)
        assert request.first_token_s == 3


class TestTokenBudget:
    def test_a_few_wait_for_more_or_for_max_waiting_tokens(self):
        running = [(0.0, 1, 30)] * 10
        alone = play(TokenBudget(max_waiting_tokens=20), *running, (1.5, 1, 1))[-1]
        assert alone.admitted_s == 20, "after the prefill and 19 decodes"
        three = play(TokenBudget(max_waiting_tokens=20), *running, *[(1.5, 1, 1)] * 3)[-1]
        assert three.admitted_s == 2, "0.3 of those who run"

    def test_a_decode_follows_every_prefill(self):
        asks = (0.0, 1, 9), (1.5, 1, 9), (2.5, 1, 9)
        assert [request.admitted_s for request in play(TokenBudget(), *asks)] == [0, 2, 4]

    def test_full_lengths_fit_the_total(self):
        asks = (0.0, 4, 6), (0.0, 4, 7)
        assert [request.admitted_s for request in play(TokenBudget(max_batch_total_tokens=21), *asks)] == [0, 0]
        assert [request.admitted_s for request in play(TokenBudget(max_batch_total_tokens=20), *asks)] == [0, 6]
        (refused,) = play(TokenBudget(max_batch_total_tokens=10), (0.0, 4, 7))
        assert refused.reason == "11 tokens exceed max_batch_total_tokens 10"

    def test_more_than_max_concurrent_requests_are_refused(self):
        requests = play(TokenBudget(max_concurrent_requests=2), *[(0.0, 1, 5)] * 3)
        assert [request.status.name for request in requests] == ["COMPLETED", "COMPLETED", "REJECTED"]


class TestSlots:
    def test_more_requests_than_slots_queue(self):
        requests = play(Slots(max_num_seqs=2), *[(0.0, 4, 3)] * 3)
        assert [request.admitted_s for request in requests] == [0, 0, 3]

    def test_the_context_is_split_among_the_slots(self):
        (refused,) = play(Slots(max_num_seqs=2), (0.0, 4, 7), blocks=20)
        assert refused.reason == "11 tokens exceed the 10 of a slot"
        (served,) = play(Slots(max_num_seqs=2, unified=True), (0.0, 4, 7), blocks=20)
        assert served.last_token_s == 7

    def test_a_shared_context_that_is_full_fails_the_last(self):
        first, second = play(Slots(max_num_seqs=2, unified=True), (0.0, 4, 7), (0.0, 4, 7), blocks=14)
        assert (first.last_token_s, first.status.name) == (7, "COMPLETED")
        assert (second.last_token_s, second.status.name) == (4, "FAILED"), "14 cells hold 4 + 3 tokens of each"
        assert second.reason == "the context that all slots share is full"


class TestChunkedPrefill:
    def test_a_long_prompt_leaves_room_for_short_ones(self):
        asks = (0.0, 12, 1), (0.0, 4, 1)
        plain = play(ChunkedPrefill(max_num_batched_tokens=8), *asks)
        assert [request.first_token_s for request in plain] == [2, 2]
        limited = play(ChunkedPrefill(max_num_batched_tokens=8, long_prefill_token_threshold=4), *asks)
        assert [request.first_token_s for request in limited] == [3, 1]

    def test_the_prompts_that_are_computed_at_once_are_limited(self):
        asks = (0.0, 12, 1), (0.0, 9, 1), (0.0, 4, 1)
        options = {"max_num_batched_tokens": 12, "long_prefill_token_threshold": 4}
        assert [r.first_token_s for r in play(ChunkedPrefill(**options), *asks)] == [3, 3, 1]
        one = ChunkedPrefill(**options, max_num_partial_prefills=1)
        assert [r.first_token_s for r in play(one, *asks)] == [3, 6, 7]
        one_long = ChunkedPrefill(**options, max_long_partial_prefills=1)
        assert [r.first_token_s for r in play(one_long, *asks)] == [3, 5, 1]

    def test_a_prompt_may_have_to_fit_as_a_whole(self):
        asks = (0.0, 4, 4), (1.0, 12, 1)
        options = {"max_num_batched_tokens": 6}
        assert play(ChunkedPrefill(**options), *asks, blocks=14)[1].admitted_s == 1
        whole = ChunkedPrefill(**options, scheduler_reserve_full_isl=True)
        assert play(whole, *asks, blocks=14)[1].admitted_s == 4

    @pytest.mark.parametrize("policy", [ChunkedPrefill, Continuous])
    def test_a_watermark_stays_free_while_anybody_runs(self, policy):
        asks = (0.0, 4, 8), (1.0, 6, 1)
        assert play(policy(), *asks, blocks=12)[1].admitted_s == 1
        assert play(policy(watermark=0.25), *asks, blocks=12)[1].admitted_s == 8
        assert play(policy(watermark=0.9), *asks, blocks=12)[0].admitted_s == 0


class TestOrder:
    def test_the_lower_priority_value_is_served_first(self):
        demands = tuple({"priority": value} for value in (1, 1, 0))
        requests = play(ChunkedPrefill(max_num_seqs=1, order="priority"), *[(0.0, 1, 2)] * 3, demands=demands)
        assert [request.admitted_s for request in requests] == [2, 4, 0]

    def test_the_shortest_job_is_served_first(self):
        requests = play(ChunkedPrefill(max_num_seqs=1, order="shortest_job_first"), (0.0, 1, 3), (0.0, 1, 2))
        assert [request.admitted_s for request in requests] == [2, 0]

    def test_a_batch_is_formed_in_order(self):
        demands = tuple({"priority": value} for value in (1, 0))
        requests = play(Static(batch_size=1, order="priority"), *[(0.0, 1, 2)] * 2, demands=demands)
        assert [request.admitted_s for request in requests] == [2, 0]

    @pytest.mark.parametrize(("order", "preempted"), [("fcfs", [0, 1]), ("priority", [1, 0])])
    def test_the_least_urgent_is_preempted(self, order, preempted):
        """Both were admitted at once, and 11 blocks end when each has 6 tokens."""
        demands = ({"priority": 1}, {"priority": 0})
        requests = play(ChunkedPrefill(order=order), *[(0.0, 4, 5)] * 2, blocks=11, demands=demands)
        assert [request.preemptions for request in requests] == preempted


class TestGivingUp:
    def test_a_client_that_waits_no_longer_frees_its_place_at_the_next_boundary(self):
        demands = ({"patience_s": 3.5}, {})
        first, second = play(ChunkedPrefill(max_num_seqs=1), (0.0, 1, 10), (0.0, 1, 1), demands=demands)
        assert (first.status.name, first.emitted_tokens, first.last_token_s) == ("FAILED", 4, 4)
        assert first.reason == "its client gave up after 3.5 s"
        assert second.admitted_s == 4

    def test_one_who_waits_leaves_the_queue_at_once(self):
        demands = ({}, {"patience_s": 3.5}, {})
        requests = play(ChunkedPrefill(max_num_seqs=1), (0.0, 1, 10), *[(0.0, 1, 1)] * 2, demands=demands)
        assert [request.status.name for request in requests] == ["COMPLETED", "FAILED", "COMPLETED"]
        assert math.isnan(requests[1].admitted_s)
        assert requests[2].admitted_s == 10

    def test_a_deadline_at_the_very_end_is_missed(self):
        (request,) = play(ChunkedPrefill(), (0.0, 1, 4), demands=({"patience_s": 4.0},))
        assert request.status.name == "FAILED"

    def test_a_server_has_limits_of_its_own(self):
        asks = (0.0, 1, 10), (0.0, 1, 10)
        requests = play(ChunkedPrefill(max_num_seqs=1), *asks, timeouts=Timeouts(request_s=4.5))
        assert [request.reason for request in requests] == ["not answered within 4.5 s"] * 2
        requests = play(ChunkedPrefill(max_num_seqs=1), *asks, timeouts=Timeouts(queue_s=4.5))
        assert [request.reason for request in requests] == ["", "not admitted within 4.5 s"]

    def test_a_batch_keeps_the_row_of_one_who_gave_up(self):
        demands = ({"patience_s": 2.5}, {})
        first, second = play(Static(batch_size=2), (0.0, 1, 9), (0.0, 1, 5), demands=demands)
        assert (first.emitted_tokens, second.last_token_s) == (3, 5)

    @pytest.mark.parametrize(("limit", "served"), [(0, 1), (1, 2), (None, 3)])
    def test_a_queue_may_be_limited(self, limit, served):
        scheduler = ChunkedPrefill(max_num_seqs=1, max_num_queued_reqs=limit)
        requests = play(scheduler, (0.0, 1, 5), (1.0, 1, 5), (1.0, 1, 5))
        assert [request.status.name for request in requests].count("COMPLETED") == served
        assert {request.reason for request in requests if request.reason} <= {f"{limit} requests wait already"}
