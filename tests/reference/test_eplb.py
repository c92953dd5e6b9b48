"""EPLB against the worked example of its authors, and placements against what no placement can beat."""

import json

import numpy as np
import pytest
from conftest import SHARED

from sim.__main__ import main
from sim.moe.balance import balancedness_sglang, max_over_mean
from sim.moe.expert_map import Layout
from sim.moe.placement.contiguous import Contiguous
from sim.moe.placement.eplb import Eplb
from sim.moe.placement.greedy import Greedy

pytestmark = pytest.mark.shared


@pytest.fixture
def example():
    return json.loads((SHARED / "data" / "moe" / "moe_eplb_readme_testcase.json").read_text())


def _loads(example):
    return np.array(example["weight"], dtype=float)


def test_the_published_example_slot_by_slot(example):
    loads = _loads(example)
    placed = Eplb().place(loads, Layout(12, 8, 16, groups=4, nodes=2))
    assert placed.physical_to_logical.tolist() == example["expected_phy2log"]
    assert placed.replicas().tolist() == example["expected_logcnt"]
    assert placed.rank_load(loads).tolist() == example["gpu_loads"]
    assert max_over_mean(placed.rank_load(loads)) == pytest.approx([1.2081, 1.2422], abs=5e-5)


def test_the_global_variant_slot_by_slot(example):
    loads, case = _loads(example), example["derived_global_case"]
    placed = Eplb().place(loads, Layout(12, 8, 16, groups=3, nodes=2))
    assert placed.physical_to_logical.tolist() == case["phy2log"]
    assert placed.replicas().tolist() == case["logcnt"]
    rank_load = placed.rank_load(loads)
    assert max_over_mean(rank_load) == pytest.approx([1.0726, 1.1903], abs=5e-5)
    assert balancedness_sglang(rank_load) == pytest.approx((0.9323 + 0.8401) / 2, abs=1e-4)


def test_experts_in_order_on_four_ranks(example):
    loads = _loads(example)
    rank_load = Contiguous().place(loads, Layout(12, 4, 12)).rank_load(loads)
    assert rank_load.tolist() == example["naive_contiguous_4gpu"]["gpu_loads"]
    assert max_over_mean(rank_load) == pytest.approx([1.2778, 1.7855], abs=5e-5)


def test_the_command_prints_the_example(example, tmp_path, capsys):
    file = tmp_path / "loads.json"
    file.write_text(json.dumps(example["weight"]))
    asked = ["--ranks", "8", "--slots", "16", "--groups", "4", "--nodes", "2", "--format", "json"]
    assert main(["moe", "place", str(file), *asked]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["physical_to_logical"] == example["expected_phy2log"]
    assert shown["rank_load"] == example["gpu_loads"]
    assert shown["max_over_mean"] == pytest.approx(example["metrics"]["max_over_mean"], abs=5e-5)


@pytest.mark.parametrize("seed", range(3))
def test_eplb_lies_between_order_and_what_is_possible(seed):
    """No rank can carry less than the mean, nor less than the lightest copy of an expert with all spare slots."""
    random = np.random.default_rng(seed)
    loads = random.lognormal(0, 1, (20, 64))
    layout = Layout(64, 8, 80)
    mean = loads.sum(axis=1) / 8
    hottest_copy = loads.max(axis=1) / (80 - 64 + 1)
    bound = np.maximum(mean, hottest_copy)
    naive = Contiguous().place(loads, Layout(64, 8, 64)).rank_load(loads).max(axis=1)
    reached = {policy.kind: policy.place(loads, layout).rank_load(loads).max(axis=1) for policy in (Eplb(), Greedy())}
    for worst in reached.values():
        assert (bound <= worst * (1 + 1e-12)).all()
        assert (worst <= naive).all()
        assert (worst / bound).mean() < 1.03
    without_copies = Greedy().place(loads, Layout(64, 8, 64)).rank_load(loads).max(axis=1)
    assert reached["eplb"].mean() < without_copies.mean()
