"""Blocks taken and given back, step by step; the rules of who may hit what are in tests/reference."""

import pytest

from sim.kv import KvCache
from sim.request import Request


def request(index, input_tokens, output_tokens=1, **more):
    return Request(index, input_tokens, output_tokens, **more)


def compute(kv, who, tokens):
    """Admit *who* and compute *tokens* of its prompt."""
    hit = kv.hits(who)
    assert kv.admit(who, hit, tokens)
    kv.computed(who, tokens)
    return hit


@pytest.mark.parametrize(("tokens", "blocks"), [(0, 0), (1, 1), (16, 1), (17, 2)])
def test_blocks_of_tokens(tokens, blocks):
    assert KvCache(8, 16).blocks(tokens) == blocks


def test_what_fits_an_empty_pool():
    kv = KvCache(2, 16)
    assert kv.fits(request(0, 20, 12))
    assert not kv.fits(request(0, 20, 13))


def test_growing_takes_a_block_only_when_one_is_full():
    kv, who = KvCache(2, 4), request(0, 3, 9)
    compute(kv, who, 3)
    assert kv.used == 1
    assert kv.grow(who, 1)
    assert kv.used == 1
    who.computed_tokens = 4
    assert kv.grow(who, 1)
    assert (kv.used, kv.free) == (2, 0)
    who.computed_tokens = 8
    assert not kv.grow(who, 1)
    kv.release(who)
    assert (kv.used, kv.free) == (0, 2)


def test_refusal_takes_nothing():
    kv, who = KvCache(2, 4), request(0, 12)
    assert not kv.admit(who, 0, 12)
    assert kv.free == 2


def test_shared_blocks_count_once_and_stay_until_the_last_user_leaves():
    kv = KvCache(8, 4, prefix_caching=True)
    one, other = (request(index, 10, segments=(("a", 8),)) for index in range(2))
    assert compute(kv, one, 10) == 0
    assert compute(kv, other, 2) == 8
    assert kv.used == 4  # 2 shared, and a third block each
    kv.release(one)
    assert kv.used == 3
    kv.release(other)
    assert (kv.used, kv.free) == (0, 8)


def test_hits_that_lie_idle_are_not_free_for_their_own_request():
    kv = KvCache(3, 4, prefix_caching=True)
    first = request(0, 8, segments=(("a", 8),))
    compute(kv, first, 8)
    kv.release(first)
    again = request(1, 13, segments=(("a", 8),))
    assert (kv.free, kv.hits(again)) == (3, 8)
    assert not kv.admit(again, 8, 5)  # 2 more blocks, of which only 1 is not among its hits
    assert kv.admit(again, 8, 4)
    assert kv.used == 3


def test_without_prefix_caching_nothing_is_hit():
    kv = KvCache(8, 4, cache_generated=True)
    first = request(0, 8, segments=(("a", 8),), output_segment="x")
    compute(kv, first, 8)
    kv.release(first)
    assert kv.hits(request(1, 12, segments=(("a", 8),))) == 0


def test_a_request_that_lacks_blocks_lacks_them_for_good_unless_its_first_hit_is_the_oldest():
    kv = KvCache(8, 4, prefix_caching=True)
    holder, other = request(0, 5, segments=(("a", 4),)), request(1, 13, segments=(("a", 12),))
    for who in (holder, other):  # both compute the first block: `holder` has its key
        assert kv.admit(who, 0, who.input_tokens)
    kv.computed(holder, holder.input_tokens)
    kv.computed(other, other.input_tokens)
    head = request(2, 40, segments=(("a", 12),))
    kv.release(holder)
    kv.release(other)
    assert kv.hits(head) == 12
    assert not kv.lacks_for_good(head)
    after = request(3, 13, segments=(("a", 12),))
    compute(kv, after, 1)
    kv.release(after)  # now they are freed in one go, the later first
    assert kv.lacks_for_good(head)


def test_an_answer_in_the_making_may_help_who_waits():
    kv = KvCache(8, 4, prefix_caching=True, cache_generated=True)
    writer = request(0, 4, 9, segments=(("a", 4),), output_segment="x")
    compute(kv, writer, 4)
    reader = request(1, 13, segments=(("a", 4), ("x", 9)))
    assert (kv.hits(reader), kv.lacks_for_good(reader)) == (4, False)

    def settle(who):
        who.computed_tokens = 8

    assert kv.grow(writer, 4)
    kv.settle = settle
    assert kv.hits(reader) == 8
    kv.release(writer)
    assert kv.lacks_for_good(reader)


def test_a_partly_filled_last_block_is_copied_by_who_begins_with_it():
    kv = KvCache(10, 4, prefix_caching=True, partial_blocks=True)
    for index, (tokens, hit) in enumerate(((6, 0), (6, 5), (9, 4))):
        request = Request(index, tokens, 3, segments=(("a", tokens),))
        assert kv.hits(request) == hit
        assert kv.admit(request, hit, request.input_tokens - hit)
        kv.computed(request, request.input_tokens - hit)
        kv.release(request)
    assert (kv.used, kv.free) == (0, 10)
