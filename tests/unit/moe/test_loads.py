"""Routing, dispatch and the tables of loads, against direct sampling."""

import numpy as np
import pytest

from sim.errors import UserError
from sim.moe.capacity import Capacity
from sim.moe.dispatch import Dispatch
from sim.moe.dispatch.least_loaded import LeastLoaded
from sim.moe.dispatch.nearest import Nearest
from sim.moe.dispatch.random import Random
from sim.moe.dispatch.round_robin import RoundRobin
from sim.moe.drift import Drift
from sim.moe.expert_map import ExpertMap, Layout
from sim.moe.mixture import Mixture, Rebalance
from sim.moe.placement.eplb import Eplb
from sim.moe.popularity.log_student import LogStudent
from sim.moe.popularity.lognormal import Lognormal
from sim.moe.routing import Routing, distinct
from sim.policy import kinds_of

PUBLISHED = Mixture(
    popularity=LogStudent(), drift=Drift(slow_sigma=0.82, batch_sigma=0.1, slow_steps=1e7)
)
"""DeepSeek-R1: what a whole data set shows, what one data set adds, what one batch adds."""


def _random():
    return np.random.default_rng(7)


@pytest.mark.parametrize("routing", [Routing(8), Routing(8, groups=8, group_limit=4)], ids=["free", "grouped"])
def test_a_token_chooses_by_popularity(routing):
    weights = Lognormal(sigma=0.5).draw(1, 64, _random())[0]
    shares = routing.shares(weights)
    chosen = routing.choose(np.broadcast_to(shares, (40_000, 64)), _random())
    assert (chosen.sum(axis=1) == 8).all()
    assert chosen.mean(axis=0) == pytest.approx(8 * shares, abs=0.012)
    groups = chosen.reshape(-1, 8, 8).any(axis=2).sum(axis=1)
    assert groups.max() <= (4 if routing.group_limit else 8)


def test_distinct_experts_exactly():
    # Two experts, each chosen by a token with probability 1/2: after 3 tokens each is missed with 1/8.
    assert distinct(np.array([0.5, 0.5]), 3) == pytest.approx(2 * 7 / 8)
    assert distinct(np.array([1.0, 1.0]), 1) == pytest.approx(2)


@pytest.mark.parametrize("sigma", [0.0, 0.65])
def test_expected_distinct_experts_against_multinomial_sampling(sigma):
    shares = Routing(1).shares(Lognormal(sigma=sigma).draw(1, 256, _random())[0])
    for choices in (8, 64, 512, 4096, 131_072):
        drawn = (_random().multinomial(choices, shares, 2000) > 0).sum(axis=1).mean()
        assert distinct(shares, choices) == pytest.approx(drawn, rel=0.01)


@pytest.mark.parametrize(
    ("experts", "top_k", "ranks", "sigma"), [(256, 8, 32, 0.65), (128, 8, 8, 0.0), (8, 2, 4, 0.3)]
)
def test_the_most_loaded_rank_against_direct_sampling(experts, top_k, ranks, sigma):
    """Batches of 1 to 16,384 tokens: token by token where that is affordable, else multinomial counts."""
    mixture, random = Mixture(popularity=Lognormal(sigma=sigma)), _random()
    load = mixture.load(64, experts, top_k, ranks)
    weights = Lognormal(sigma=sigma).draw(
        64, experts, np.random.default_rng(np.random.SeedSequence(0, spawn_key=tuple(b"experts")))
    )
    routing = Routing(top_k)
    shares = np.tile(routing.shares(weights), (128, 1))
    counts, done = np.zeros(shares.shape, dtype=np.int64), 0
    for tokens in (1, 2, 5, 10):
        for _ in range(tokens - done):
            counts += routing.choose(shares, random)
        done = tokens
        _compare(load.at(tokens), counts, ranks)
    for tokens in (300, 1000, 4096, 16_384):
        _compare(load.at(tokens), random.multinomial(tokens * top_k, shares), ranks)


def _compare(expected, counts, ranks):
    by_rank = counts.reshape(len(counts), ranks, -1)
    rows = by_rank.sum(axis=2)
    busiest = rows.argmax(axis=1)
    touched = (by_rank > 0).sum(axis=2)[np.arange(len(rows)), busiest]
    assert expected.max_over_mean == pytest.approx((rows.max(axis=1) / rows.mean(axis=1)).mean(), rel=0.01)
    assert expected.touched == pytest.approx(touched.mean(), rel=0.01)


def test_the_load_as_numbers_for_the_cost():
    load = PUBLISHED.load(4, 64, 4, 8)
    assert load.at(1e6).touched == pytest.approx(8)
    assert load.at(1).touched < load.at(2).touched < load.at(40).touched


def test_published_imbalance_before_and_after_eplb():
    """TensorRT-LLM, DeepSeek-R1, per iteration: 1.564 at EP32, 0.115 at EP36 with 288 slots; 1024 rows a rank.

    58 layers differ by chance: the mean of three models.
    """
    balancing = {"placement": Eplb(), "num_redundant_experts": 32, "rebalance": Rebalance()}
    before, after = [], []
    for seed in range(3):
        model = PUBLISHED.model_copy(update={"seed": seed})
        before.append(model.load(58, 256, 8, 32).at(32 * 1024 / 8).max_over_mean - 1)
        after.append(model.model_copy(update=balancing).load(58, 256, 8, 36).at(36 * 1024 / 8).max_over_mean - 1)
    assert np.mean(before) == pytest.approx(1.564, rel=0.03)
    assert np.mean(after) == pytest.approx(0.115, abs=0.006)


def test_a_placement_ages():
    drift = Drift(slow_sigma=0.8, slow_steps=10_000)
    mixture = Mixture(popularity=Lognormal(), drift=drift, placement=Eplb())
    often, seldom = (
        mixture.model_copy(update={"rebalance": Rebalance(step_interval=every, window_size=10)}).load(8, 64, 4, 8)
        for every in (100, 30_000)
    )
    assert often.at(4096).max_over_mean < seldom.at(4096).max_over_mean
    assert 0 < often.fetched_slots < seldom.fetched_slots <= 64  # slots of one new placement


LAYOUT = Layout(3, 2, 4, nodes=2)
PLACED = ExpertMap(LAYOUT, np.array([[0, 1], [0, 2]]).reshape(1, 4))


@pytest.mark.parametrize("dispatch", [policy() for policy in kinds_of("sim.moe.dispatch", Dispatch).values()], ids=str)
def test_every_dispatch_serves_every_token(dispatch):
    counts = _random().integers(0, 50, (20, 1, 3))
    slots = dispatch.split(counts, PLACED, _random())
    assert (slots[..., 0] + slots[..., 2] == counts[..., 0]).all()
    assert (slots[..., [1, 3]] == counts[..., [1, 2]]).all()
    assert (slots >= 0).all()


def test_what_the_dispatches_differ_in():
    counts = np.tile(np.array([[[9, 6, 0]]]), (500, 1, 1))
    policies = (Random(), RoundRobin(), LeastLoaded())
    shares = {policy.kind: policy.split(counts, PLACED, _random())[..., 0] for policy in policies}
    assert set(np.unique(shares["round_robin"])) == {4, 5}
    assert shares["random"].mean() == pytest.approx(4.5, abs=0.3)
    assert shares["random"].std() == pytest.approx(1.5, abs=0.2)  # binomial
    assert shares["least_loaded"].mean() == pytest.approx(1.5, abs=0.4)  # 7.5 tokens on each rank


def test_nearest_by_hand():
    # Expert 0 once on each of ranks 0 and 1 (node 0), not on 2 and 3 (node 1).
    placed = ExpertMap(Layout(3, 4, 4, nodes=2), np.array([[0, 0, 1, 2]]))
    assert Nearest().weights(placed).tolist() == [[0.5, 0.5, 1.0, 1.0]]
    # Expert 0 on ranks 0, 1 and 2: rank 0 and 1 serve themselves, rank 2 itself and rank 3.
    placed = ExpertMap(Layout(2, 4, 4, nodes=2), np.array([[0, 0, 0, 1]]))
    assert Nearest().weights(placed).tolist() == [[0.25, 0.25, 0.5, 1.0]]


def test_capacity():
    taken = np.array([8, 2, 1, 1])
    assert Capacity(factor=1.5).limit(taken).tolist() == [5, 2, 1, 1]
    overflowing = Capacity(factor=1.5, beyond="overflow").limit(taken)
    assert overflowing == pytest.approx([5, 2 + 9 / 11, 1 + 12 / 11, 1 + 12 / 11])
    assert Capacity(factor=0.5, beyond="overflow").limit(taken).tolist() == [2, 2, 2, 2]
    load = PUBLISHED.model_copy(update={"capacity": Capacity(factor=1.0)}).load(4, 64, 4, 8)
    assert 0 < load.at(4096).dropped < 1
    assert load.at(4096).max_over_mean <= 1.01


def test_traffic_counts_ranks_and_nodes():
    load = Mixture().load(2, 64, 8, 8, 2)
    # 8 of 64 experts without replacement; a rank of 8 experts is missed with (56 choose 8)/(64 choose 8) = 0.3209.
    assert load.ranks_per_token == pytest.approx(8 * (1 - 0.3209), rel=0.03)
    assert load.nodes_per_token == pytest.approx(2 * (1 - 0.0024), rel=0.01)
    grouped = Mixture(groups=8, group_limit=2).load(2, 64, 8, 8, 8)
    assert grouped.nodes_per_token <= 2


def test_tokens_in_runs_are_fewer_choices():
    alone, runs = (Mixture(run_tokens=run).load(16, 64, 4, 8) for run in (1, 4))
    assert runs.at(64).touched == pytest.approx(alone.at(16).touched, rel=0.03)


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"groups": 7}, "do not divide by 7 groups"), ({"groups": 8, "group_limit": 1}, "1 of 8 groups hold fewer")],
)
def test_routers_that_cannot_be(options, reason):
    with pytest.raises(UserError, match=reason):
        Mixture(**options).load(2, 32, 8, 4)
