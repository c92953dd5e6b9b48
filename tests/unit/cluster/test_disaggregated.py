"""Prompts on one replica and answers on another, each time computed by hand: an iteration takes a second."""

import math
from dataclasses import replace

import pytest
from serving import Ask, Case

from sim.cluster import Cluster, Pool, Port
from sim.cluster.link import Link
from sim.cost import Affine
from sim.memory.footprint import KvFootprint
from sim.metrics.gaps import Progressions
from sim.request import Status
from sim.router.disaggregation import Disaggregation, LocalPrefill
from sim.router.round_robin import RoundRobin
from sim.scheduler.chunked_prefill import ChunkedPrefill
from sim.scheduler.sglang import Sglang
from sim.workload.traffic import Traffic

SECOND = Affine(base_s=1.0).build()
PORT = Port(KvFootprint(ranks=1, layers=4, token_bytes=((None, 1.0),)), bytes_per_s=8.0)
OPTIONS = Disaggregation(first_token="prefill", order="prefill_first", latency_s=0.25)
ASK = (0.0, 4, 3)


def play(*asks, blocks=(100, 100), replicas=(1, 1), scheduler=None, ports=(PORT, PORT), caching=False, **options):
    """Serve *asks* of (arrival, prompt, answer, segments), with blocks of 4 tokens; prompts move 8 tokens a second."""
    case = Case(scheduler or ChunkedPrefill(), 0, 4, tuple(Ask(*ask) for ask in asks), prefix_caching=caching)
    pools = [
        Pool(replace(case.engine(cost=SECOND), num_blocks=number), count, role=role, port=port)
        for number, count, role, port in zip(blocks, replicas, ("prefill", "decode"), ports, strict=True)
    ]
    requests = case.requests()
    demands = options.pop("demands", {})
    for request in requests:
        for name, value in demands.items():
            setattr(request, name, value)
    cluster = Cluster(pools, RoundRobin(), Traffic(requests), disaggregation=OPTIONS.model_copy(update=options))
    strides = cluster.run()
    return requests, cluster.transfers(), strides


def first_and_last(requests):
    return [(request.first_token_s, request.last_token_s) for request in requests]


class TestOneRequest:
    """4 tokens are computed in [0, 1], their KV moves in [1, 1.5] and is there at 1.75."""

    def test_the_prefill_replica_emits_the_first_token(self):
        (request,), transfers, strides = play(ASK)
        assert first_and_last([request]) == [(1.0, 3.75)]
        assert (request.replica, request.admitted_s) == (1, 0.0)
        assert (transfers.begin_s[0], transfers.arrive_s[0], transfers.moved_bytes[0]) == (1.0, 1.75, 4.0)
        odd = Progressions.odd(strides)
        assert odd.first_s.tolist() == [1.75]  # the gap that the transfer makes
        assert Progressions.in_strides(strides).count + odd.count == 2

    def test_the_decode_replica_passes_it_on(self):
        (request,), _, _ = play(ASK, first_token="transfer")
        assert first_and_last([request]) == [(1.75, 3.75)]

    def test_the_decode_replica_computes_it_again(self):
        (request,), transfers, strides = play(ASK, first_token="decode")
        assert transfers.moved_bytes[0] == 3.0  # all but the last token, which takes 0.375 s
        assert first_and_last([request]) == [(2.625, 4.625)]
        assert Progressions.in_strides(strides).count == 2
        assert Progressions.odd(strides).count == 0

    def test_an_answer_of_one_token_needs_no_decode_replica(self):
        (request,), transfers, _ = play((0.0, 4, 1))
        assert (first_and_last([request]), request.replica, len(transfers.request)) == ([(1.0, 1.0)], 0, 0)
        (request,), transfers, _ = play((0.0, 4, 1), first_token="transfer")
        assert (first_and_last([request]), request.replica, len(transfers.request)) == ([(1.75, 1.75)], 1, 1)

    def test_layers_go_while_others_are_computed(self):
        (request,), transfers, _ = play(ASK, order="decode_first", overlap=True)
        # The first bytes at 0; the last of 4 layers, an eighth of a second, after the prompt, and then the latency.
        assert (transfers.begin_s[0], transfers.arrive_s[0]) == (0.0, 1.375)
        assert first_and_last([request]) == [(1.0, 3.375)]

    def test_an_encoder_delays_everything(self):
        (request,), _, _ = play(ASK, encode_s=0.5)
        assert first_and_last([request]) == [(1.5, 4.25)]

    def test_a_client_that_gives_up_during_the_transfer(self):
        (request,), _, _ = play(ASK, demands={"patience_s": 1.5})
        assert (request.status, request.reason) == (Status.FAILED, "its client gave up after 1.5 s")
        assert request.first_token_s == 1.0

    def test_a_client_that_gives_up_before_the_prompt_is_computed(self):
        for order in ("prefill_first", "decode_first"):
            (request,), transfers, _ = play(ASK, demands={"patience_s": 0.5}, order=order)
            assert (request.status, len(transfers.request)) == (Status.FAILED, 0)
            assert math.isnan(request.first_token_s)


@pytest.mark.parametrize(("replicas", "arrive_s"), [((1, 1), [1.75, 2.25]), ((1, 2), [1.75, 2.25]),
                                                    ((2, 1), [1.75, 2.25]), ((2, 2), [1.75, 1.75])])  # fmt: skip
def test_a_port_serves_one_transfer_after_the_other(replicas, arrive_s):
    _, transfers, _ = play(ASK, ASK, replicas=replicas)
    assert transfers.arrive_s.tolist() == arrive_s


def test_blocks_are_held_until_they_are_sent_and_taken_before():
    # A and B are computed together. A's 8 tokens move in [1, 2]; it decodes in [2.25, 3.25]. Only then are there two of
    # the 3 blocks for B. C, with 2 of 4 blocks of the prefill replica to wait for, is computed when A's are free.
    asks = ((0.0, 8, 2), (0.0, 8, 2), (1.5, 8, 1))
    requests, transfers, _ = play(*asks, blocks=(4, 3))
    assert first_and_last(requests) == [(1.0, 3.25), (1.0, 5.5), (3.25, 3.25)]
    assert transfers.begin_s.tolist() == [1.0, 3.25]


def test_who_has_no_blocks_to_decode_is_not_computed_where_those_come_first():
    requests, _, _ = play((0.0, 8, 2), (0.0, 8, 2), blocks=(4, 3), order="decode_first")
    # A: prompt until 1, there at 2.25, done at 3.25. Then B: until 4.25, there at 5.5, done at 6.5.
    assert first_and_last(requests) == [(1.0, 3.25), (4.25, 6.5)]


def test_who_is_admitted_first_is_asked_for_first():
    requests, _, _ = play(ASK, ASK, order="decode_first", scheduler=ChunkedPrefill(max_num_batched_tokens=4))
    assert [request.first_token_s for request in requests] == [1.0, 2.0]


def test_what_the_decode_replica_has_in_its_prefix_cache_does_not_move():
    shared = (("system", 8),)
    asks = ((0.0, 10, 2, shared), (9.0, 10, 2, shared))
    requests, transfers, _ = play(*asks, caching=True)
    assert transfers.moved_bytes.tolist() == [10.0, 2.0]
    assert requests[1].cached_tokens == 8  # on the prefill replica


def test_short_prompts_and_crowds_stay_on_the_decode_replica():
    requests, transfers, _ = play((0.0, 4, 3), (0.0, 5, 3), local_prefill=LocalPrefill(below_tokens=5))
    assert first_and_last(requests)[0] == (1.0, 3.0)
    assert transfers.request.tolist() == [1]
    crowd = [(0.0, 8, 2)] * 4
    _, transfers, _ = play(*crowd, local_prefill=LocalPrefill(queue_above=1))
    assert sorted(transfers.request.tolist()) == [0, 1]


def test_who_is_preempted_while_its_kv_moves_computes_its_prompt_again():
    # A's KV is there at 6. B is computed in [8, 9]; its KV, for which two of 5 blocks are taken, is to be there at 14.
    # At 10 A takes its fourth block, so that B must give its two up; when A is done at 14, B computes 9 tokens.
    requests, _, _ = play((0.0, 8, 9), (8.0, 8, 2), blocks=(9, 5), latency_s=4.0)
    assert [request.preemptions for request in requests] == [0, 1]
    assert first_and_last(requests) == [(1.0, 14.0), (9.0, 15.0)]


def test_sglang_reserves_for_those_whose_kv_is_on_its_way():
    asks = ((0.0, 8, 40), (0.0, 8, 40))
    requests, _, _ = play(*asks, scheduler=Sglang(), blocks=(9, 18), first_token="transfer", order="decode_first")
    assert requests[1].admitted_s > 20  # 48 tokens and the other's share of 40 exceed the 72 of the pool


class TestLink:
    def test_the_side_with_fewer_ranks_is_the_slower(self):
        narrow = Port(KvFootprint(1, 1, ((None, 4.0),)), 8.0)
        wide = Port(KvFootprint(4, 1, ((None, 4.0),)), 8.0)
        for sender, receiver in ((0, 1), (1, 0)):
            link = Link({0: narrow, 1: wide}, 0.0)
            assert link.move(sender, receiver, 2, since_s=0.0, ready_s=0.0).arrive_s == 1.0
        assert Link({0: wide, 1: wide}, 0.0).move(0, 1, 2, since_s=0.0, ready_s=0.0).arrive_s == 0.25

    def test_nothing_takes_no_time(self):
        assert Link({0: PORT, 1: PORT}, 1.0).move(0, 1, 0, since_s=0.0, ready_s=3.0) == (3.0, 3.0, 0.0)


def test_a_prompt_of_one_token_that_is_computed_again_has_nothing_to_move():
    (request,), transfers, _ = play((0.0, 1, 2), first_token="decode")
    assert (first_and_last([request]), len(transfers.request)) == ([(1.0, 2.0)], 0)
