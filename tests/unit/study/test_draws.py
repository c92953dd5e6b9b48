import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

import sim
from sim.__main__ import main
from sim.errors import ConfigError
from sim.experiment import load_experiment
from sim.metrics.model_error import ModelError, Spread, with_draws
from sim.profiles.calibrated import Constant, ElementwiseConstants, Fit
from sim.profiles.calibrated_engine import EngineConstants
from sim.simulate import simulate
from sim.simulate.draws import Draw, _drawn
from sim.study import draws

EXPERIMENT = """
model: meta-llama/Llama-3.1-8B-Instruct
deployment: {gpu: H100-SXM-80GB}
engine: {kind: vllm, version: "0.15.1", max_model_len: 4096}
workload:
  arrivals: {kind: closed_loop, concurrency: 1}
  lengths: {kind: fixed, input_tokens: 100, output_tokens: 11}
  num_requests: 4
"""
ERRORS = """
name: serving
sources: {all: test}
regimes:
  - {rows: 40, factors: {ttft: 1.0, tpot: 1.0, itl: 1.0, e2el: 1.0, throughput: 1.0},
     max_input_tokens: 1000, max_output_tokens: 1000, max_running: 64}
"""
CONSTANTS = """
name: vllm
sources: {all: test}
entries:
  - since: "0.15"
    overlapped: false
    constants: {host_per_iteration_s: {value: 0.010, stderr: 0.001, bounds: [0, 1]}}
    fit: {source: test}
"""
KERNELS = Path(sim.__file__).parents[1] / "profiles" / "calibrated" / "hardware" / "H100-SXM-80GB.yaml"
SURE = re.sub(r"stderr: [^,}]+", "stderr: 0", KERNELS.read_text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Profiles where nothing but the host's time per iteration is unsure: 10 +- 1 ms."""
    folder = tmp_path_factory.mktemp("draws")
    texts = {"errors/serving": ERRORS, "engines/vllm": CONSTANTS, "hardware/H100-SXM-80GB": SURE}
    for name, text in texts.items():
        path = folder / "profiles" / "calibrated" / f"{name}.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    (folder / "experiment.yaml").write_text(EXPERIMENT)
    return folder


@pytest.fixture
def experiment(folder):
    """One request at a time."""
    return lambda *overrides: load_experiment(folder / "experiment.yaml", overrides)


def test_the_spread_of_one_constant_is_that_of_the_time_per_token(experiment):
    """The second smallest of 39 draws, one from each slice, lies between the quantiles 1/39 and 2/39."""
    result = draws.with_draws(simulate(experiment()), 39, 1).summary.as_dict()
    tpot_ms, (low_ms, high_ms) = result["mean_tpot_ms"], result["intervals"]["mean_tpot_ms"]
    assert norm.ppf(1 / 39) < low_ms - tpot_ms < norm.ppf(2 / 39)
    assert norm.ppf(37 / 39) < high_ms - tpot_ms < norm.ppf(38 / 39)
    assert result["draws"]["count"] == 39
    assert any("intervals: draws (39) of 1 constant," in warning for warning in result["warnings"])

    parts = result["draws"]["factors"]["mean_tpot_ms"]
    assert parts["traffic"] == pytest.approx(1)  # one request at a time, all of one length
    assert parts["model"] == 1
    assert math.log(parts["constants"]) == pytest.approx(1.645 / tpot_ms, rel=0.05)


def test_one_draw_reaches_as_far_as_students_t_of_one(experiment):
    """A normal number is within 6.31 times another one in nine of ten pairs."""
    drawn = draws.with_draws(simulate(experiment()), 1, 1)
    result, (moved,) = drawn.summary.as_dict(), drawn.context.spread.moved["mean_tpot_ms"]
    low_ms, high_ms = result["intervals"]["mean_tpot_ms"]
    assert math.log(high_ms / result["mean_tpot_ms"]) == pytest.approx(6.3138 * abs(moved), rel=1e-4)
    assert math.log(result["mean_tpot_ms"] / low_ms) == pytest.approx(6.3138 * abs(moved), rel=1e-4)


def test_nothing_depends_on_the_number_of_processes(experiment):
    plain = simulate(experiment("workload.arrivals={kind: poisson, rate: 20}", "workload.num_requests=20"))
    one, two = (draws.with_draws(plain, 2, processes).summary.as_dict() for processes in (1, 2))
    assert json.dumps(one) == json.dumps(two)


def test_without_standard_errors_there_is_nothing_to_draw(experiment):
    line = simulate(experiment("cost_model={kind: affine, base_s: 0.01}"))
    with pytest.raises(ConfigError, match="nothing to draw without standard errors: its constants are the user's own"):
        draws.with_draws(line, 4)
    sure = simulate(experiment("engine.calibration=none"))
    with pytest.raises(ConfigError, match="no constant of its profiles has one"):
        draws.with_draws(sure, 4)


@pytest.mark.parametrize("known", [1.5, 1.01])
def test_what_measured_runs_show_counts_once(known):
    """Their errors hold those of the constants, so that together they are the larger of the two."""
    moved = tuple(norm.ppf((place + 0.5) / 999) * 0.1 for place in range(999))
    spread = Spread(1, {"mean_tpot_ms": moved}, {"mean_tpot_ms": moved})
    ((low, high),) = with_draws(spread, ModelError({"tpot": known}, ""), {"mean_tpot_ms": 10.0}).values()
    larger = max(math.log(known), 1.645 * 0.1)
    assert (math.log(high / 10), math.log(10 / low)) == pytest.approx((larger, larger), rel=0.01)


def test_intervals_are_as_lopsided_as_the_draws_and_hold_the_value():
    moved = tuple([0.0] * 50 + [2.0] * 50)
    spread = Spread(1, {"mean_ttft_ms": moved}, {"mean_ttft_ms": moved})
    assert with_draws(spread, None, {"mean_ttft_ms": 10.0}) == {"mean_ttft_ms": (10.0, pytest.approx(10 * math.e**2))}


def test_draws_fill_equal_slices_inside_the_bounds():
    constant = Constant(value=0.0, stderr=1.0, bounds=(0.0, 3.0))
    values = sorted(Draw(1, number, 10).of("it", constant).value for number in range(10))
    share = [2 * (norm.cdf(value) - 0.5) / (2 * (norm.cdf(3) - 0.5)) for value in values]
    assert [int(10 * each) for each in share] == list(range(10))


def test_constants_of_an_engine_are_drawn_together():
    """Two of which only the difference is unsure: whatever one gains the other gains, too."""
    names = ("host_per_iteration_s", "delay_fixed_s")
    unsure = {name: Constant(value=5.0, stderr=0.5, bounds=(0.0, 10.0)) for name in names}
    drawn = [Draw(1, number, 50).together("it", unsure, {names[0]: {names[1]: 1.0}}) for number in range(50)]
    one, other = ([each[name].value for each in drawn] for name in names)
    assert one == pytest.approx(other)
    assert np.std(one) == pytest.approx(0.5, rel=0.2)


def test_constants_of_a_kernel_are_drawn_together():
    unsure = {"value": 5.0, "stderr": 0.5, "bounds": (0.0, 10.0)}
    fit = Fit(source="test", correlations={"launch_s": {"memory": -1.0}})
    kernel = ElementwiseConstants(memory=unsure, launch_s=unsure, fit=fit)
    drawn = [_drawn(kernel, "it", Draw(1, number, 50), wider=2.0) for number in range(50)]
    assert [each.launch_s.value for each in drawn] == pytest.approx([10 - each.memory.value for each in drawn])
    assert np.std([each.memory.value for each in drawn]) == pytest.approx(1.0, rel=0.2)


def test_correlations_are_of_its_own_constants():
    with pytest.raises(ValueError, match="are not two of its constants"):
        EngineConstants(constants={}, correlations={"delay_fixed_s": {"memory_factor": 0.5}}, fit=Fit(source="test"))


def test_the_same_name_and_seed_are_drawn_alike():
    constant = Constant(value=1.0, stderr=0.1, bounds=(0.0, 3.0))
    assert Draw(1, 3, 10).of("it", constant) == Draw(1, 3, 10).of("it", constant)
    assert Draw(1, 3, 10).of("it", constant) != Draw(1, 3, 10).of("another", constant)


def test_the_command_says_and_writes_them(folder, tmp_path, capsys):
    path, out = str(folder / "experiment.yaml"), str(tmp_path / "out")
    assert main(["run", path, "--draws", "2", "--workers", "1", "--quiet", "--out", out]) == 0
    assert "! intervals: draws (2) of 1 constant," in capsys.readouterr().out
    assert json.loads(Path(out, "result.json").read_text())["draws"]["count"] == 2
    assert json.loads(Path(out, "manifest.json").read_text())["draws"] == 2


def test_processes_without_draws_are_refused(folder, capsys):
    assert main(["run", str(folder / "experiment.yaml"), "--workers", "2"]) == 2
    assert "--workers: they compute draws, and there are none: --draws N" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [["run", "--draws", "0"], ["sweep", "--out", "x", "--draws", "2"]])
def test_other_commands_and_no_draws_are_refused_by_name(wrong, capsys):
    command, *options = wrong
    with pytest.raises(SystemExit, match="2"):
        main([command, "experiment.yaml", *options])
    assert "--draws" in capsys.readouterr().err
