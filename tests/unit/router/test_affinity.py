"""Routers that follow caches and sessions, by hand."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from fleets import Replica, request, routed

from sim.router.active import ActivePrompts
from sim.router.kv_aware import KvAware
from sim.router.length_based import LengthBased
from sim.router.prefix_affinity import PrefixAffinity
from sim.router.prefixes import PrefixIndex
from sim.router.session_affinity import SessionAffinity
from sim.router.weighted import Weighted

A = (("a", 400), ("x", 600))


def three(**loads):
    return [Replica(index, **{name: values[index] for name, values in loads.items()}) for index in range(3)]


def test_prefix_affinity_returns_to_who_was_sent_the_prefix():
    replicas = three(outstanding=(0, 3, 5))
    choose, fleet = routed(PrefixAffinity(), *replicas)
    assert choose(request(segments=A)) == 0
    replicas[0].outstanding = 9
    fleet.changed(0)
    again = request(segments=(("a", 400), ("y", 600)))
    assert choose(again) == 0
    assert again.expected_hit_tokens == 400


def test_prefix_affinity_needs_more_than_the_threshold():
    replicas = three(outstanding=(0, 3, 5))
    choose, fleet = routed(PrefixAffinity(cache_threshold=0.4), *replicas)
    choose(request(segments=A))
    replicas[0].outstanding = 9
    fleet.changed(0)
    other = request(segments=(("a", 400), ("y", 600)))
    assert choose(other) == 1
    assert other.expected_hit_tokens == 0
    assert choose(request(segments=(("a", 400), ("z", 599)))) == 0


@pytest.mark.parametrize(("busy", "chosen"), [(66, 0), (67, 1)])
def test_prefix_affinity_gives_up_when_loads_are_out_of_balance(busy, chosen):
    replicas = three(outstanding=(0, 2, 5))
    choose, fleet = routed(PrefixAffinity(), *replicas)
    choose(request(segments=A))
    replicas[0].outstanding = busy  # 64 more than the least is allowed
    fleet.changed(0)
    assert choose(request(segments=A)) == chosen


def test_prefix_affinity_takes_many_requests_for_balanced_if_all_have_many():
    replicas = three(outstanding=(0, 200, 200))
    choose, fleet = routed(PrefixAffinity(), *replicas)
    choose(request(segments=A))
    replicas[0].outstanding = 300
    fleet.changed(0)
    assert choose(request(segments=A)) == 0
    replicas[0].outstanding = 301  # more than 1.5 times the least
    fleet.changed(0)
    assert choose(request(segments=A)) == 1


def test_kv_aware_weighs_hits_against_loads():
    # 0 has 1,000 tokens to decode. Of the next prompt, 400 are cached there and 400 are active: 200 in all, and what is
    # pending, against what is pending at 1.
    for pending, chosen in ((299, 0), (301, 1)):
        replicas = three(pending_tokens=(0, 500, 9999))
        choose, fleet = routed(KvAware(block_tokens=1), *replicas)
        assert choose(request(segments=A)) == 0
        replicas[0].pending_tokens = pending
        fleet.changed(0)
        assert choose(request(segments=(("a", 400), ("y", 600)))) == chosen


def test_kv_aware_counts_prompts_that_wait_for_their_first_token():
    replicas = three(pending_tokens=(100, 60, 500))
    choose, _ = routed(KvAware(), *replicas)
    assert choose(request(100)) == 1
    choose, _ = routed(KvAware(overlap_score_weight=0), *replicas)
    assert {choose(request(100)) for _ in range(20)} == {0, 1, 2}, "of equal costs any"


def test_kv_aware_counts_what_active_prompts_share_once_and_forgets_who_ended():
    active = ActivePrompts()
    prefixes = PrefixIndex(lambda replica: math.inf)
    first, second = request(segments=A), request(segments=(("a", 400), ("y", 100)))
    paths = [prefixes.path(prompt) for prompt in (first, second)]
    active.add(first, paths[0], 1)
    active.add(second, paths[1], 1)
    assert active.tokens[1] == 1100
    assert active.shared(prefixes.path(request(segments=(("a", 400), ("z", 9))))) == {1: 400}
    active.ended(first)
    assert active.tokens[1] == 500
    active.left(1)
    active.ended(second)
    assert active.tokens.tolist() == [0] * 8
    assert not active._users


def test_kv_aware_counts_full_blocks_only_and_leaves_a_token_to_compute():
    replicas = three(pending_tokens=(0, 9000, 9000))
    choose, _ = routed(KvAware(block_tokens=16), *replicas)
    choose(request(segments=(("a", 40),)))
    for prompt, hit in ((request(segments=(("a", 40), ("b", 5))), 32), (request(segments=(("a", 32),)), 31)):
        assert choose(prompt) == 0
        assert prompt.expected_hit_tokens == hit


def test_kv_aware_remembers_no_more_than_the_cache_has_room_for():
    replicas = three(kv_tokens=(1000, 1000, 1000), pending_tokens=(0, 5000, 5000))
    choose, _ = routed(KvAware(), *replicas)
    for name in "ab":
        choose(request(segments=((name, 1000),)))
    again = request(segments=(("a", 1000),))
    assert choose(again) == 0
    assert again.expected_hit_tokens == 0


def test_kv_aware_draws_by_temperature():
    replicas = three(pending_tokens=(0, 50, 100))
    choose, fleet = routed(KvAware(router_temperature=0.5), *replicas)
    counts = Counter()
    for _ in range(3000):
        prompt = request(10)
        counts[choose(prompt)] += 1
        prompt.replica = 0
        fleet.ended(prompt)
    weights = np.exp([0.0, -1.0, -2.0])
    assert [counts[index] / 3000 for index in range(3)] == pytest.approx(weights / weights.sum(), abs=0.03)


def test_weighted_adds_up_its_scores():
    # queue 2: (1, 0.5, 0); KV cache 2: (0.1, 0.5, 0.9): 2.2, 2.0 and 1.8 in all; a prefix is worth 3.
    replicas = three(waiting=(0, 2, 4), kv_usage=(0.9, 0.5, 0.1))
    choose, _ = routed(Weighted(), *replicas)
    assert choose(request(segments=A)) == 0
    choose, _ = routed(Weighted(queue=0), *replicas)
    assert choose(request(segments=A)) == 2
    choose, _ = routed(Weighted(queue=0, kv_cache=0, running=1), *three(running=(2, 1, 3)))
    assert choose(request(segments=A)) == 1


def test_weighted_sees_reports_only_but_knows_what_it_sent():
    replicas = three(waiting=(0, 2, 4))
    choose, fleet = routed(Weighted(kv_cache=0), *replicas)
    assert choose(request(segments=A)) == 0
    replicas[0].waiting = 9
    fleet.changed(0)
    assert choose(request(segments=(("other", 99),))) == 0, "nobody has reported yet"
    for _, report in fleet.reports:
        report()
    assert choose(request(segments=(("another", 99),))) == 1
    assert choose(request(segments=A)) == 0, "a full hit outweighs the longest queue: 3 against 2"


def test_weighted_compares_the_beginning_of_a_prompt_only():
    replicas = three(waiting=(0, 2, 4))
    choose, fleet = routed(Weighted(kv_cache=0, queue=2.9), *replicas)
    choose(request(segments=(("a", 4096), ("b", 10_000))))
    replicas[0].waiting = 99
    for _, report in fleet.reports:
        report()
    assert choose(request(segments=(("a", 4096), ("c", 10_000)))) == 0


def test_weighted_follows_sessions_if_told_to():
    choose, fleet = routed(Weighted(queue=0, kv_cache=0, session=1), *three())
    homes = {name: choose(request(9, session_id=name)) for name in "abcdef"}
    assert all(choose(request(9, session_id=name)) == home for name, home in homes.items())
    fleet.leave(homes["a"])
    assert choose(request(9, session_id="a")) != homes["a"]


def test_sessions_stay_and_those_of_a_lost_replica_spread():
    replicas = [Replica(index) for index in range(8)]
    choose, fleet = routed(SessionAffinity(), *replicas)
    names = [f"session {number}" for number in range(4000)]
    homes = {name: choose(request(9, session_id=name)) for name in names}
    shares = np.bincount(list(homes.values()), minlength=8) / len(names)
    assert shares == pytest.approx(np.full(8, 1 / 8), abs=0.04)
    fleet.leave(3)
    moved = {name: choose(request(9, session_id=name)) for name in names}
    assert {name for name in names if moved[name] != homes[name]} == {name for name in names if homes[name] == 3}
    assert len({moved[name] for name in names if homes[name] == 3}) == 7
    fleet.join(replicas[3])
    assert {name: choose(request(9, session_id=name)) for name in names} == homes


def test_without_a_session_the_fewest_requests_decide():
    choose, _ = routed(SessionAffinity(), *three(outstanding=(2, 1, 3)))
    assert choose(request(9)) == 1


def test_length_based_keeps_long_prompts_from_short_ones():
    replicas = three(outstanding=(5, 4, 0))
    choose, fleet = routed(LengthBased(short_tokens=100, short_replicas=2), *replicas)
    assert [choose(request(tokens)) for tokens in (1, 100, 101)] == [1, 1, 2]
    fleet.leave(2)
    assert choose(request(1000)) == 1, "where none of its group is ready, one of the other"


@pytest.mark.parametrize("router", [PrefixAffinity(), KvAware(), Weighted(), SessionAffinity()])
def test_affinity_survives_that_replicas_come_and_go(router):
    replicas = three()
    choose, fleet = routed(router, *replicas)
    for turn in range(30):
        index = turn % 3
        if index in fleet.loads and len(fleet.ready) > 1:
            fleet.leave(index)
        elif index not in fleet.loads:
            fleet.join(replicas[index])
        prompt = request(segments=A, session_id=f"{turn % 5}")
        assert choose(prompt) in fleet.ready
        assert not math.isnan(prompt.expected_hit_tokens)
