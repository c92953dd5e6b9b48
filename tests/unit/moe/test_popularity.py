"""Popularity against what was published about it."""

import numpy as np
import pytest

from sim.errors import UserError
from sim.moe.balance import imbalance, top_share
from sim.moe.expert_map import Layout
from sim.moe.placement.contiguous import Contiguous
from sim.moe.popularity import limited
from sim.moe.popularity.log_student import LogStudent
from sim.moe.popularity.lognormal import Lognormal
from sim.moe.popularity.measured import Measured
from sim.moe.popularity.power_law import PowerLaw
from sim.moe.popularity.uniform import Uniform
from sim.moe.popularity.zipf import Zipf


def _draw(policy, layers=4000, experts=256):
    return policy.draw(layers, experts, np.random.default_rng(0))


def _imbalance_ep32(weights):
    return imbalance(Contiguous().place(weights, Layout(256, 32, 256)).rank_load(weights))


def test_the_long_run_share_of_the_hottest_experts():
    """moe-balance, DeepSeek-R1 over GPQA and AIME 2025: the top 32 of 256 take 31.1 %."""
    assert top_share(_draw(Lognormal(sigma=0.65)), 32).mean() == pytest.approx(0.306, abs=0.003)


def test_the_imbalance_of_an_iteration():
    """TensorRT-LLM, DeepSeek-R1 at EP32: (max - mean)/mean 1.564 averaged over layers."""
    assert _imbalance_ep32(_draw(Lognormal(sigma=1.07))) == pytest.approx(1.56, rel=0.03)


def test_the_power_law_of_the_kernel_tables():
    """aiconfigurator's sampler, alpha 1.01, 4096 tokens, EP32: 1.563, with 64 % for the top 32."""
    weights = limited(_draw(PowerLaw(alpha=1.01, tokens=4096)), 8)
    assert _imbalance_ep32(weights) == pytest.approx(1.563, rel=0.02)
    assert top_share(weights, 32).mean() == pytest.approx(0.64, abs=0.01)


def test_a_power_law_of_exponent_one_is_the_limit():
    near, at = (_draw(PowerLaw(alpha=alpha), 2) for alpha in (1 - 1e-6, 1.0))
    assert near == pytest.approx(at, rel=1e-4)
    assert at.min() >= 1
    assert at.max() <= 0.8 * 4096


def test_zipf_shuffles_each_layer():
    weights = Zipf(exponent=1).draw(2, 4, np.random.default_rng(3))
    assert np.sort(weights, axis=1)[:, ::-1].tolist() == [[1, 1 / 2, 1 / 3, 1 / 4]] * 2
    assert (weights[0] != weights[1]).any()
    assert (_draw(Zipf(exponent=0), 1, 8) == _draw(Uniform(), 1, 8)).all()


def test_no_expert_takes_more_than_every_token():
    # 2 of 4: the hottest takes 1/2, the rest goes to the others 2 : 1 : 1.
    assert limited(np.array([100.0, 2, 1, 1]), 2) == pytest.approx([0.5, 0.25, 0.125, 0.125])
    # 3 of 4: two are full, in two rounds.
    assert limited(np.array([100.0, 10, 1, 1]), 3) == pytest.approx([1 / 3, 1 / 3, 1 / 6, 1 / 6])
    assert limited(np.array([1.0, 1, 1]), 3) == pytest.approx([1 / 3] * 3)


def test_measured_loads_are_taken_as_they_are(tmp_path):
    file = tmp_path / "loads.csv"
    file.write_text("3,0,1\n")
    drawn = Measured(path=file).draw(2, 3, np.random.default_rng(0))
    assert drawn == pytest.approx(np.array([[3, 0, 1]] * 2), abs=1e-8)
    with pytest.raises(UserError, match="1 x 3 layers and experts, where the model has 2 x 4"):
        Measured(path=file).draw(2, 4, np.random.default_rng(0))
    file.write_text("1,2,3\n0,0,0\n")
    with pytest.raises(UserError, match="without any load"):
        Measured(path=file).draw(2, 3, np.random.default_rng(0))


def test_routes_do_not_tell_of_experts_that_nobody_chose(tmp_path):
    file = tmp_path / "routes.jsonl"
    file.write_text('{"layer": 0, "topk_ids": [1]}')
    assert Measured(path=file).draw(1, 3, np.random.default_rng(0)) == pytest.approx(np.array([[0, 1, 0]]), abs=1e-8)


def test_the_published_long_run_of_deepseek():
    """58 layers over GPQA: the hottest of 256 has 6.1 times the mean (in half of them 4.8 to 8.1), 32 have 31.1 %."""
    weights = LogStudent().draw(4000, 256, np.random.default_rng(1))
    shares = weights / weights.sum(axis=1, keepdims=True)
    hottest = shares.max(axis=1) * 256
    assert np.median(hottest) == pytest.approx(6.1, abs=0.1)
    assert np.quantile(hottest, [0.25, 0.75]) == pytest.approx([4.8, 8.1], abs=0.2)
    assert np.median(top_share(weights, 32)) == pytest.approx(0.311, abs=0.003)
    assert np.isfinite(LogStudent(freedom=0.1).draw(100, 256, np.random.default_rng(1))).all()
