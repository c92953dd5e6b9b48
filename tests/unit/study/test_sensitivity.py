import json

import numpy as np
import pytest
from small_search import answer

from sim.errors import ConfigError, UserError
from sim.study.sobol import sobol_indices

PRICE = "{kind: sensitivity, paths: {prices.gpu_hour_usd: {low: 1, high: 4}}, outputs: [usd_per_mtok]}"
RIVALS = """{kind: sensitivity, paths: {workload.arrivals.rate: {low: 1, high: 30}}, outputs: [output_throughput],
  rivals: {cheap: {cost_model.base_s: 0.011, prices.gpu_hour_usd: 1}, fast: {cost_model.base_s: 0.004}}}"""


def test_cost_follows_the_price_and_nothing_else(tmp_path):
    found = answer(tmp_path, PRICE, overrides=["prices.gpu_hour_usd=2"])
    (effect,) = found.effects
    assert effect.at_low == pytest.approx(effect.base / 2)
    assert effect.at_high == pytest.approx(effect.base * 2)
    assert effect.swing == pytest.approx(1.5)


def test_effects_are_sorted_by_their_swing(tmp_path):
    search = """{kind: sensitivity, outputs: [mean_tpot_ms, tpot_p90],
      paths: {workload.seed: {low: 1, high: 2}, cost_model.base_s: {low: 0.004, high: 0.016}}}"""
    with pytest.raises(ConfigError, match="unknown key 'seed'"):
        answer(tmp_path, search)
    found = answer(tmp_path, search.replace("workload.seed", "workload.arrivals.rate"))
    assert [effect.output for effect in found.effects] == ["mean_tpot_ms"] * 2 + ["tpot_p90"] * 2
    assert found.effects[0].path == "cost_model.base_s"
    assert 0.5 < found.effects[0].swing < 2


def test_the_rate_from_which_the_fast_rival_wins(tmp_path):
    found = answer(tmp_path, RIVALS)
    assert found.best == "cheap"
    (switch, *_) = found.switches
    assert (switch.before, switch.after) == ("cheap", "fast")
    assert 4 < switch.value < 30
    assert switch.reason.startswith("cheap misses t")
    json.dumps(found.as_dict(), allow_nan=False)


def test_sobol_indices_of_the_ishigami_function():
    """Known in closed form: first 0.3139, 0.4424, 0; total 0.5576, 0.4424, 0.2437 (Ishigami and Homma 1990)."""

    def ishigami(shares):
        x, y, z = -np.pi + 2 * np.pi * shares
        return np.array([np.sin(x) + 7 * np.sin(y) ** 2 + 0.1 * z**4 * np.sin(x)])

    found = sobol_indices(ishigami, ("x", "y", "z"), ("f",), 1024, 1)
    assert [index.first for index in found] == pytest.approx([0.3139, 0.4424, 0.0], abs=0.03)
    assert [index.total for index in found] == pytest.approx([0.5576, 0.4424, 0.2437], abs=0.03)
    assert all(index.first_interval[0] <= index.first <= index.first_interval[1] for index in found)


BOTH = PRICE.replace("{prices", "{prices.electricity_usd_per_kwh: {low: 0.1, high: 0.2}, prices")


def test_all_variance_comes_from_the_path_that_counts(tmp_path):
    found = answer(tmp_path, BOTH[:-1] + ", sobol_points: 8}")
    power, price = found.indices
    assert (power.first, power.total) == pytest.approx((0, 0), abs=1e-9)
    assert price.total == pytest.approx(1, abs=0.3)


def test_a_figure_that_is_not_known_has_no_variance(tmp_path):
    with pytest.raises(UserError, match="energy_j_per_output_tok is not known everywhere"):
        answer(tmp_path, BOTH[:-1].replace("usd_per_mtok", "energy_j_per_output_tok") + ", sobol_points: 8}")


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (PRICE.replace("usd_per_mtok", "usd_per_mtk"), "no figure 'usd_per_mtk' .did you mean 'usd_per_mtok'"),
        (PRICE.replace("low: 1", "low: 5"), r"high \(4\) must be above low \(5\)"),
        (PRICE[:-1] + ", sobol_points: 7}", "power of two, not 7"),
        (PRICE[:-1] + ", sobol_points: 8}", "among paths: name two or more"),
        (PRICE[:-1] + ", rivals: {a: {}}}", "one rival has nobody to compete with"),
    ],
)
def test_wrong_searches_are_one_line(tmp_path, search, message):
    with pytest.raises(ConfigError, match=message):
        answer(tmp_path, search)
