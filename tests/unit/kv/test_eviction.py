"""Which blocks of the prefix cache go first, by hand and beside a plain list."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving import random_runs

from sim.errors import ConfigError
from sim.experiment import experiment_of
from sim.kv import KvCache
from sim.kv.eviction import Ranked
from sim.request import Request
from sim.simulate import prepare
from sim.yamlfile import parse_yaml


class Cache:
    """A cache of blocks of one token; prompts of named pieces are served one after the other."""

    def __init__(self, blocks, eviction):
        self.kv, self.count = KvCache(blocks, 1, prefix_caching=True, eviction=eviction), 0

    def serve(self, name, tokens, priority=0):
        """Compute a prompt of *tokens* tokens called *name* and one more; return how many of them were hit."""
        request = Request(self.count, tokens + 1, 1, segments=((name, tokens),), priority=priority)
        self.count += 1
        hit = self.kv.hits(request)
        assert self.kv.admit(request, hit, tokens + 1 - hit)
        self.kv.computed(request, tokens + 1 - hit)
        self.kv.release(request)
        self.kv.forget(request)
        return hit


@pytest.mark.parametrize(("eviction", "hit"), [("lru", 0), ("lfu", 4), ("slru", 4)])
def test_a_prompt_that_is_often_used_outlives_many_that_are_used_once(eviction, hit):
    cache = Cache(8, eviction)
    assert [cache.serve("system", 4), cache.serve("system", 4)] == [0, 4]
    for number in range(5):
        cache.serve(f"once {number}", 3)
    assert cache.serve("system", 4) == hit


def test_among_those_that_are_protected_the_oldest_goes_first():
    served = ["a"] * 5 + ["b"] * 2 + ["c"] * 2
    left = {}
    for eviction in ("lfu", "slru"):
        cache = Cache(8, eviction)
        for name in served:
            cache.serve(name, 3)
        left[eviction] = cache.serve("a", 3)
    assert left == {"lfu": 3, "slru": 1}, "a was used most often, and least recently: c took two blocks"


def test_blocks_of_urgent_requests_stay():
    cache = Cache(8, "priority")
    cache.serve("urgent", 4, priority=-1)
    for number in range(5):
        cache.serve(f"any {number}", 3)
    assert cache.serve("urgent", 4, priority=5) == 4
    for number in range(5):
        cache.serve(f"any {number}", 3)
    assert cache.serve("urgent", 4) == 4, "it is as urgent as whoever used it and was most so"


def test_later_blocks_of_a_prompt_go_before_earlier_ones():
    for eviction in ("lru", "lfu", "slru", "priority"):
        cache = Cache(8, eviction)
        cache.serve("a", 5)
        cache.serve("b", 4)
        assert cache.serve("a", 5) == 3, eviction


KEYS = st.integers(0, 5)


@pytest.mark.parametrize("eviction", ["lfu", "slru", "priority"])
def test_order_is_that_of_a_sorted_list(eviction):
    step = st.tuples(st.sampled_from(("use", "leave", "take", "evict")), KEYS, st.integers(-2, 2))

    @random_runs(200)
    @given(st.lists(step, max_size=40))
    def same(steps):
        ranked, idle, uses, frees = Ranked(eviction), {}, {}, 0
        for what, key, priority in steps:
            if what == "use" and key not in idle:
                ranked.use([key], Request(0, 1, 1, priority=priority))
                uses.setdefault(key, []).append(priority)
            elif what == "leave":
                frees += 1
                ranked[key] = frees
                idle[key] = frees
            elif what == "take":
                assert ranked.pop(key, None) == idle.pop(key, None)
            elif what == "evict" and idle:
                first = next(iter(ranked))
                del ranked[first], idle[first]
                uses.pop(first, None)
            by_hand = {each: (_rank(eviction, uses.get(each, [])), idle[each]) for each in idle}
            assert {each: ranked[each] for each in idle} == by_hand
            assert all((each in ranked) == (each in idle) for each in range(6))
            assert next(iter(ranked), None) == min(by_hand, key=by_hand.get, default=None)

    same()


def _rank(eviction, priorities):
    if eviction == "priority":
        return -min(priorities, default=0)
    return max(len(priorities), 1) if eviction == "lfu" else int(len(priorities) > 1)


def test_an_experiment_chooses_and_needs_a_prefix_cache():
    text = """
model: Qwen/Qwen3-8B
deployment: {gpu: H100-SXM-80GB}
engine: {kind: sglang, eviction: slru}
workload: {arrivals: {kind: offline}, lengths: {kind: fixed, input_tokens: 9, output_tokens: 9}}
"""
    assert prepare(experiment_of(parse_yaml(text, "e.yaml"))).engine.eviction == "slru"
    without = parse_yaml(text, "e.yaml").override("engine.prefix_caching=false")
    with pytest.raises(ConfigError, match=r"engine\.eviction: there is no prefix cache"):
        prepare(experiment_of(without))
