"""Placements on loads small enough to check by hand."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.errors import UserError
from sim.moe import balance
from sim.moe.expert_map import ExpertMap, Layout
from sim.moe.packing import pack, replicate
from sim.moe.placement import Placement
from sim.moe.placement.contiguous import Contiguous
from sim.moe.placement.eplb import Eplb
from sim.moe.placement.fixed import Fixed
from sim.moe.placement.greedy import Greedy
from sim.moe.placement.random import Random
from sim.moe.placement.round_robin import RoundRobin
from sim.policy import kinds_of

LOADS = np.array([[9.0, 1, 4, 2], [1, 1, 1, 1]])


def test_in_order_and_dealt_out():
    layout = Layout(4, 2, 6)
    assert Contiguous().place(LOADS, layout).physical_to_logical.tolist() == [[0, 1, 2, 3, 0, 1]] * 2
    assert RoundRobin().place(LOADS, layout).physical_to_logical.tolist() == [[0, 2, 0, 1, 3, 1]] * 2


def test_greedy_by_hand():
    # Copies: 9 -> 4.5 + 4.5, then 4.5 is still the heaviest: 3 + 3 + 3. Experts 0 0 0 1 2 3 weigh 3 3 3 1 4 2.
    # 4 to rank 0; 3 to rank 1; 3 to rank 1 is lightest (3 < 4) but holds expert 0, so rank 0; 3 to rank 1, as both
    # have it; 2 to rank 1 (6 < 7); 1 to rank 0.
    placed = Greedy().place(LOADS[:1], Layout(4, 2, 6))
    assert placed.physical_to_logical.tolist() == [[2, 0, 1, 0, 0, 3]]
    assert placed.rank_load(LOADS[:1]).tolist() == [[8, 8]]


def test_one_item_a_pack_stays_where_it_is():
    assert pack(np.float32([1, 5, 3]), 3).tolist() == [[0], [1], [2]]


def test_ties_go_to_the_lowest_index():
    assert replicate(np.float32([2, 2, 1]), 5).tolist() == [0, 1, 2, 0, 1]
    assert pack(np.float32([1, 1, 1, 1]), 2).tolist() == [[0, 2], [1, 3]]


def test_random_is_seeded_and_differs_by_layer():
    layout = Layout(32, 4, 32)
    loads = np.ones((2, 32))
    first, again, other = (Random(seed=seed).place(loads, layout).physical_to_logical for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()
    assert (first[0] != first[1]).any()


def test_fixed_takes_what_the_command_printed(tmp_path):
    layout = Layout(4, 2, 6)
    placed = Eplb().place(LOADS, layout)
    file = tmp_path / "map.json"
    file.write_text(json.dumps({"physical_to_logical": placed.physical_to_logical.tolist()}))
    assert (Fixed(path=file).place(LOADS, layout).physical_to_logical == placed.physical_to_logical).all()
    with pytest.raises(UserError, match="2 x 6"):
        Fixed(path=file).place(LOADS, Layout(4, 2, 8))
    with pytest.raises(UserError, match="expert 3 of 3"):
        Fixed(path=file).place(LOADS[:, :3], Layout(3, 2, 6))


@pytest.mark.parametrize(
    ("layout", "reason"),
    [
        ((8, 3, 8), "8 slots do not divide by 3 ranks"),
        ((8, 2, 6), "6 slots cannot hold 8 experts"),
        ((8, 0, 8), "ranks must be at least 1, got 0"),
        ((8, 4, 8, 1, 3), "4 ranks do not divide by 3 nodes"),
        ((8, 4, 10**9), "at most"),
    ],
)
def test_layouts_that_cannot_be(layout, reason):
    with pytest.raises(UserError, match=reason):
        Layout(*layout)


def test_groups_of_unequal_size():
    with pytest.raises(UserError, match="4 experts do not divide by 3 groups"):
        Eplb().place(LOADS, Layout(4, 2, 6, groups=3))


def test_an_expert_without_a_slot():
    with pytest.raises(UserError, match="expert 2 has no slot in layer 0"):
        ExpertMap(Layout(3, 1, 3), np.array([[0, 1, 1]]))


POLICIES = [policy() for kind, policy in kinds_of("sim.moe.placement", Placement).items() if kind != "fixed"]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.kind)
@given(data=st.data())
def test_every_policy_keeps_every_load(policy, data):
    experts, ranks = data.draw(st.integers(1, 24)), data.draw(st.integers(1, 6))
    per_rank = -(-experts // ranks) + data.draw(st.integers(0, 3))
    layer = st.lists(st.floats(0, 1e6, width=32), min_size=experts, max_size=experts)
    loads = np.array(data.draw(st.lists(layer, min_size=1, max_size=3)))
    placed = policy.place(loads, Layout(experts, ranks, ranks * per_rank))
    assert (placed.replicas() >= 1).all()
    assert placed.rank_load(loads).sum(axis=1) == pytest.approx(loads.sum(axis=1))


def test_definitions_of_balance_differ():
    rank_load = np.array([[3.0, 1.0], [10.0, 10.0], [0.0, 0.0]])
    assert balance.max_over_mean(rank_load).tolist() == [1.5, 1.0, 1.0]
    assert balance.imbalance(rank_load) == pytest.approx(0.5 / 3)
    assert balance.balancedness_sglang(rank_load) == pytest.approx((2 / 3 + 1 + 1) / 3)
    assert balance.balancedness_vllm(rank_load) == pytest.approx((2 + 10) / (3 + 10))
    assert balance.top_share(np.array([[1.0, 3, 4, 2]]), 2) == pytest.approx([0.7])


def test_moved_counts_what_a_rank_has_to_fetch():
    layout = Layout(4, 2, 4)
    before, after = (ExpertMap(layout, np.array([slots])) for slots in ([0, 1, 2, 3], [1, 2, 0, 3]))
    assert after.moved(before).tolist() == [0.5]
    assert after.moved(after).tolist() == [0.0]
