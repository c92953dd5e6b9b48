"""Experts placed anew while serving: when, what the stall is, and what a placement is worth until then."""

import numpy as np
import pytest

from sim.batch import Batch
from sim.cluster.rebalanced import Rebalanced
from sim.cost import Affine, Rebalances
from sim.experiment import experiment_of
from sim.moe.drift import Drift
from sim.moe.mixture import Mixture, Rebalance
from sim.moe.placement.eplb import Eplb
from sim.moe.popularity.lognormal import Lognormal
from sim.profiles.library import load_hardware
from sim.simulate import play, prepare, ready_pools
from sim.yamlfile import parse_yaml

QWEN = """
model: Qwen/Qwen3-30B-A3B
deployment: {{gpu: H100-SXM-80GB, parallelism: {parallelism}}}
engine: {{version: "0.19", max_model_len: 4096, num_gpu_blocks_override: 3000}}
moe:
  popularity: {{kind: lognormal, sigma: 0.65}}
  drift: {{slow_sigma: 0.9, slow_steps: 100}}
  placement: {{kind: eplb}}
  rebalance: {{step_interval: {interval}, window_size: 10, use_async: {use_async}, layer_overhead_s: 0.002}}
stride: {stride}
workload:
  num_requests: {requests}
  arrivals: {{kind: {arrivals}}}
  lengths: {{kind: fixed, input_tokens: 64, output_tokens: {output}}}
"""
SPREAD, SHARED = "{tp: 1, dp: 4, ep: 4}", "{tp: 4, ep: 4}"


def _experiment(**options):
    chosen = {
        "parallelism": SHARED,
        "interval": 40,
        "use_async": "false",
        "stride": "on",
        "requests": 8,
        "arrivals": "offline",
        "output": 101,
    } | options
    return experiment_of(parse_yaml(QWEN.format(**chosen), "x.yaml"))


def _play(**options):
    experiment = _experiment(**options)
    _, requests, strides, *_ = play(experiment, ready_pools(experiment))
    return requests, strides


def _at_steps(strides):
    """Return start, time and number of every iteration, in order; the rows of one rank."""
    own = strides.replica == strides.replica[0]
    rows = (strides.start_s[own], strides.first_s[own], strides.growth_s[own], strides.iterations[own])
    seconds = [first + growth * np.arange(count) for _, first, growth, count in zip(*rows, strict=True)]
    return np.concatenate(seconds)


@pytest.mark.parametrize("parallelism", [SPREAD, SHARED], ids=["lockstep", "alone"])
def test_the_iteration_after_a_rebalancing_waits_for_it(parallelism):
    """An interval of 40: the first after 10 iterations, then after every 40; a stall of 48 layers each."""
    _, strides = _play(parallelism=parallelism)
    seconds = _at_steps(strides)
    rebalances = prepare(_experiment(parallelism=parallelism)).engine.cost.rebalances
    waiting = np.flatnonzero(seconds > 48 * 0.002)
    assert waiting.tolist() == [10, 50, 90]
    steady = np.median(seconds[1:])
    found = seconds[waiting] - steady
    assert found == pytest.approx(rebalances.stalls_s[1:4], rel=0.05)


def test_a_stall_by_hand():
    """Each layer takes its overhead, and the bytes of what a rank fetches over the rate of its link."""
    engine = prepare(_experiment()).engine
    mixture = _experiment().moe
    loads = mixture.loads(48, 128, 8, 4, 1)
    expert_bytes = 3 * 2048 * 768 * 2
    rate = engine.cost.by_tokens  # the link of the all-reduce, as calibrated
    link = next(each.rates.large.bytes_per_s for each in rate if each.name == "all_reduce")
    for load, stall_s in zip(loads, engine.cost.rebalances.stalls_s, strict=True):
        assert 0 < load.fetched_slots <= 128
        assert stall_s == pytest.approx(48 * (0.002 + load.fetched_slots / 4 * expert_bytes / link))
    assert link < load_hardware("H100-SXM-80GB").interconnect.bytes_per_s * 2


def test_nothing_waits_where_weights_move_beside_the_iterations():
    _, stalls = _play()
    _, moves = _play(use_async="true")
    assert _at_steps(moves).max() < 48 * 0.002 < _at_steps(stalls).max()
    assert prepare(_experiment(use_async="true")).engine.cost.rebalances.stalls_s == (0.0,) * 6


@pytest.mark.parametrize("parallelism", [SPREAD, SHARED], ids=["lockstep", "alone"])
def test_strides_and_single_iterations_agree(parallelism):
    some = {"parallelism": parallelism, "arrivals": "poisson, rate: 20", "requests": 60, "output": 30}
    strided, stepped = (_play(stride=stride, **some) for stride in ("on", "off"))
    assert strided[0].last_token_s == pytest.approx(stepped[0].last_token_s, rel=1e-9)
    assert len(strided[1].start_s) < len(stepped[1].start_s)


def test_a_placement_lasts_for_its_interval():
    """By hand: paces of 1, 2 and 3 s, stalls of 10, 20 and 30 s, an interval of 8 iterations."""
    steps = tuple(Affine(base_s=base).build() for base in (1.0, 2.0, 3.0))
    placed, batch = Rebalanced(Rebalances(8, steps, (10.0, 20.0, 30.0))), Batch(decodes=1)
    assert placed.pace(batch) == (1.0, 0.0, 2)
    placed.passed(1)
    assert placed.pace(batch) == (1.0, 0.0, 1)
    placed.passed(1)
    assert placed.pace(batch) == (22.0, 0.0, 1)
    placed.passed(1)
    assert placed.pace(batch) == (2.0, 0.0, 7)
    placed.passed(7)
    assert placed.pace(batch).first_s == 33.0
    placed.passed(8)
    assert placed.pace(batch).first_s == 11.0  # and again from the first


def test_slots_are_conserved_and_drift_is_followed():
    """Every placement fills all slots, every expert has one at least; rebalancing seldom leaves ranks less even."""
    drift = Drift(slow_sigma=0.9, slow_steps=2000)
    mixture = Mixture(popularity=Lognormal(), drift=drift, placement=Eplb(), num_redundant_experts=16)
    shares, placed = mixture.placed(4, 64, 4, 8)
    assert placed.replicas().sum(axis=1).tolist() == [80] * 4
    assert placed.replicas().min() >= 1
    assert placed.rank_load(shares).sum(axis=1) == pytest.approx(np.ones(4))
    assert placed.moved(placed).tolist() == [0.0] * 4
    worst = []
    for interval in (100, 1000, 10_000):
        rebalance = Rebalance(step_interval=interval, window_size=50)
        load = mixture.model_copy(update={"rebalance": rebalance}).load(4, 64, 4, 8)
        worst.append(load.at(8192).max_over_mean)
        assert 0 < load.fetched_slots <= 80
    assert worst == sorted(worst)
