import math

import numpy as np
import pytest

from calibration.validation.uncertainty import Observed, coverage, error_table, half_of


def run(index, error, engine="vllm", gpu="H100-SXM-80GB", load="light", **others):
    made = {"model": "ab"[index % 2], "input_tokens": 100.0, "output_tokens": 50.0, "running": 8.0} | others
    errors = {"ttft": error, "tpot": error / 2}
    return Observed(f"run {index}", engine, gpu, load=load, errors=errors, **made)


def test_the_factor_is_the_conformal_quantile():
    # Of 39 errors 0.01 .. 0.39 the ceil(0.9 * 40) = 36th counts.
    table = error_table([run(index, (index + 1) / 100) for index in range(39)])
    regime = table.of("vllm", "H100-SXM-80GB", "light")
    assert regime.gpus == ("H100-SXM-80GB",)
    assert regime.factors["ttft"] == pytest.approx(math.exp(0.36), rel=1e-3)
    assert regime.factors["tpot"] == regime.factors["itl"] == pytest.approx(math.exp(0.18), rel=1e-3)


def test_a_regime_with_few_runs_takes_the_errors_of_a_wider_one():
    runs = [run(index, 0.1) for index in range(30)] + [run(40 + index, 0.7, gpu="L4") for index in range(5)]
    regime = error_table(runs).of("vllm", "L4", "busy")
    assert (regime.gpus, regime.rows) == ((), 35)


def test_a_regime_of_one_model_takes_the_errors_of_a_wider_one():
    runs = [run(index, 0.1) for index in range(30)] + [run(40 + index, 0.7, gpu="L4", model="a") for index in range(30)]
    regime = error_table(runs).of("vllm", "L4", "busy")
    assert (regime.gpus, regime.rows) == ((), 60)


def test_ranges_are_those_of_the_runs():
    runs = [run(index, 0.1, input_tokens=float(index), running=2.0 * index) for index in range(1, 31)]
    regime = error_table(runs).of("vllm", "H100-SXM-80GB", "light")
    assert (regime.max_input_tokens, regime.max_running) == (30, 60)


def test_intervals_made_from_one_half_hold_nine_in_ten_of_the_other():
    random = np.random.default_rng(5)
    runs = [run(index, abs(error)) for index, error in enumerate(random.normal(0, 0.2, 2000))]
    share, count = coverage(runs, half_of)["ttft"]
    assert count == 2000
    assert share == pytest.approx(90, abs=2)
