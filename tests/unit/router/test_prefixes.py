"""What a router remembers of prompts, against a scan of all that was sent."""

from __future__ import annotations

import math

import pytest
from fleets import request
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.router.prefixes import PrefixIndex


def index_of(replicas, capacity=math.inf):
    index = PrefixIndex(lambda replica: capacity)
    for replica in range(replicas):
        index.joined(replica)
    return index


def shared(one, other):
    """Return how many tokens two prompts begin with in common, by their segments."""
    total = 0
    for (name, tokens), (twin, length) in zip(one, other, strict=False):
        if name != twin:
            return total
        total += min(tokens, length)
        if tokens != length:
            return total
    return total


segments = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 3)), min_size=1, max_size=4).map(tuple)


@settings(derandomize=True, max_examples=300, deadline=None)
@given(st.lists(st.tuples(segments, st.integers(0, 2)), max_size=12), segments)
def test_it_knows_the_longest_prefix_of_every_replica(sent, asked):
    index = index_of(3)
    for pieces, replica in sent:
        index.insert(index.path(request(segments=pieces)), replica)
    path = index.path(request(segments=asked))
    expected = {
        replica: tokens
        for replica in range(3)
        if (tokens := max((shared(pieces, asked) for pieces, to in sent if to == replica), default=0))
    }
    assert index.hits(path) == expected
    tokens, holder = index.longest(path)
    assert tokens == max(expected.values(), default=0)
    assert expected.get(holder, 0) == tokens
    assert (holder == -1) == (not expected)


def test_of_several_the_first_that_was_sent_it():
    index = index_of(3)
    for replica in (2, 0, 1):
        index.insert(index.path(request(segments=(("a", 5),))), replica)
    assert index.longest(index.path(request(segments=(("a", 5),)))) == (5, 2)


def test_the_least_recently_sent_is_forgotten_first_and_the_end_of_a_prompt_before_its_beginning():
    index = index_of(1, capacity=10)
    prompts = {name: index.path(request(segments=(("system", 4), (name, 3)))) for name in "xyz"}
    index.insert(prompts["x"], 0)
    index.insert(prompts["y"], 0)
    assert [index.longest(prompts[name])[0] for name in "xy"] == [7, 7]
    index.insert(prompts["x"], 0)
    index.insert(prompts["z"], 0)  # one of 13 tokens must go: y, as x was sent again
    assert [index.longest(prompts[name])[0] for name in "xyz"] == [7, 4, 7]


def test_what_no_other_prompt_shares_takes_room_as_well():
    index = index_of(1, capacity=10)
    index.insert(index.path(request(segments=(("a", 4),))), 0)
    index.insert(index.path(request(input_tokens=9)), 0)
    assert index.longest(index.path(request(segments=(("a", 4),)))) == (0, -1)


def test_a_replica_that_left_holds_nothing_and_nothing_when_it_is_back():
    index = index_of(2)
    path = index.path(request(segments=(("a", 4),)))
    index.insert(path, 1)
    index.left(1)
    assert index.hits(path) == {}
    index.joined(1)
    assert index.hits(path) == {}
    assert not index._holders


@pytest.mark.parametrize("capacity", [0, 3])
def test_a_prompt_beyond_the_capacity_leaves_nothing_behind(capacity):
    index = index_of(1, capacity)
    index.insert(index.path(request(segments=(("a", 4), ("b", 4)))), 0)
    assert index._sizes[0] <= capacity
    assert set(index._holders) == set(index._held[0])


