"""A grammar is compiled beside the queue, once a replica."""

from serving import Ask, Case, serve

from sim.cost import Affine
from sim.scheduler.chunked_prefill import ChunkedPrefill

SECOND = Affine(base_s=1).build()


def test_who_needs_a_new_grammar_waits_for_it_and_is_overtaken():
    asks = Ask(0, 4, 1), Ask(0, 4, 1), Ask(1, 4, 1), Ask(9, 4, 1), Ask(9, 4, 1)
    demands = tuple({"schema": name} for name in ("a", "", "a", "a", "b"))
    case = Case(ChunkedPrefill(), 64, 4, asks, demands=demands, compile_s=2.5)
    requests, strides = serve(case, cost=SECOND)
    assert [request.admitted_s for request in requests] == [2.5, 0, 2.5, 9, 11.5]
    assert [request.first_token_s for request in requests] == [3.5, 1, 3.5, 10, 12.5]
    assert strides.masks.tolist() == [0, 2, 1, 1]


def test_every_replica_compiles_for_itself():
    asks = Ask(0, 4, 1), Ask(5, 4, 1), Ask(10, 4, 1)
    case = Case(ChunkedPrefill(), 64, 4, asks, demands=({"schema": "a"},) * 3, compile_s=2.5)
    assert [request.admitted_s for request in serve(case, cost=SECOND, replicas=2)[0]] == [2.5, 7.5, 10]


def test_masks_are_made_for_decodes_and_for_the_ends_of_prompts():
    asks = Ask(0, 8, 3), Ask(0, 4, 3)
    case = Case(ChunkedPrefill(max_num_batched_tokens=4), 64, 4, asks, demands=({"schema": "a"}, {}))
    assert serve(case, cost=SECOND)[1].masks.tolist() == [0, 1, 1, 1, 0]
