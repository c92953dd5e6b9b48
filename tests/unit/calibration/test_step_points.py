import numpy as np
import pytest

from calibration.__main__ import main
from calibration.cases.of_files import steps_of
from calibration.fitting.fit import fit
from calibration.fitting.step_points import step_points
from sim.errors import UserError
from sim.profiles.calibrated import Constant, Fit
from sim.profiles.calibrated_engine import EngineConstants

ASSUMED = {"engine": "vllm", "engine_version": "0.15.1"}
HEADER = (
    "model,gpu,tp,experiment,step_id,num_prefill_reqs,num_prefill_tokens,num_decode_seqs,sum_kv_tokens,step_ms,exact"
)
SHAPE = "meta-llama/Llama-3.1-8B-Instruct,H100-SXM-80GB,1,one"
TRUE = {"host_per_iteration_s": 3e-3, "host_per_sequence_s": 20e-6}


def trace(path, step_ms):
    """Write decodes of 1 to 120 sequences of 500 tokens each, a prompt among them, and one time that is not exact."""
    rows = [f"{SHAPE},{each},0,0,{each},{500 * each},{ms},1" for each, ms in enumerate(step_ms, start=1)]
    rows += [f"{SHAPE},900,1,400,8,4000,99,1", f"{SHAPE},901,0,0,8,4000,99,0"]
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    return path


@pytest.fixture
def path(tmp_path):
    """A trace of a host that takes `TRUE` and adds to the GPU's time, with one time in twelve 1.5 times as long."""
    blank = trace(tmp_path / "steps.csv", [1.0] * 120)
    ((case, steps),) = steps_of(blank, {}, ASSUMED)
    made = {name: Constant(value=value, bounds=(0, 1)) for name, value in TRUE.items()}
    truth = EngineConstants(overlapped=False, constants=made, fit=Fit(source="true"))
    noise = np.exp(np.random.default_rng(1).normal(0, 0.01, 120))
    noise[::12] *= 1.5
    points = list(step_points(case, steps))
    return trace(
        blank, [point.predicted(truth)["step_ms"] * factor for point, factor in zip(points, noise, strict=True)]
    )


def test_each_exact_decode_is_a_point(path):
    ((case, steps),) = steps_of(path, {}, ASSUMED)
    points = list(step_points(case, steps))
    assert [point.step.batch.decodes for point in points] == list(range(1, 121))
    assert points[7].case.name == "one/7"
    assert points[0].noise("step_ms") == pytest.approx(0.05 * 2)  # 120 steps weigh as much as 30 runs


def test_known_host_times_come_back_from_steps_alone(path):
    outcome = fit([path], {}, ASSUMED)
    found = outcome.fitted.constants
    assert found.overlapped is False
    for name, value in TRUE.items():
        constant = found.constants[name]
        assert abs(constant.value - value) < 2.6 * constant.stderr, name
    assert {"delay_fixed_s", "stream_lag_iterations"} <= set(outcome.fitted.unknown)
    assert (len(outcome.used), len(outcome.held_out)) == (96, 24)
    assert outcome.on_held_out["step_ms"]["medape"] < 1.5 < outcome.before["step_ms"]["medape"]


def test_the_command_fits_and_validates_them(path, capsys):
    said = [f"--assume={name}={value}" for name, value in ASSUMED.items()]
    assert main(["fit", str(path), *said]) == 0
    assert "vllm: 96 steps fitted, 24 kept back" in capsys.readouterr().out
    assert main(["validate", str(path), *said, "--where", "tp=1"]) == 0
    assert "(120)" in capsys.readouterr().out


def test_a_trace_of_nobody_knows_what_is_refused_with_the_reason(path):
    with pytest.raises(UserError, match="not stated: engine; if you know: --assume engine=vllm"):
        fit([path], {}, {})


def test_what_a_trace_does_not_state_is_asked_for(tmp_path, capsys):
    path = tmp_path / "steps.csv"
    path.write_text("num_prefill_reqs,num_prefill_tokens,num_decode_seqs,sum_kv_tokens,step_ms\n0,0,4,2000,8\n")
    assert main(["validate", str(path), "--assume", "engine=vllm", "--assume", "gpu=L40S"]) == 0
    assert "not stated: model, tp; if you know: --assume model=NAME --assume tp=N\n" in capsys.readouterr().out


def test_all_ranks_of_a_trace_share_its_model(path):
    ((case, steps),) = steps_of(path, {}, ASSUMED | {"pp": "2"})
    (first, *_) = step_points(case, steps)
    assert first.deployment.experiment.deployment.parallelism.pp == 2
    assert "weights as in the checkpoint" in first.assumed
