import pytest

from sim.experiment import load_experiment
from sim.simulate import simulate

EXPERIMENT = """
model: meta-llama/Llama-3.1-8B-Instruct
deployment: {gpu: H100-SXM-80GB}
engine: {kind: vllm, version: "0.15.1", max_model_len: 4096}
workload:
  arrivals: {kind: closed_loop, concurrency: 2}
  lengths: {kind: fixed, input_tokens: 200, output_tokens: 20}
  num_requests: 8
"""
TABLE = """
name: serving
sources: {all: test}
regimes:
  - {engine: vllm, rows: 40, factors: {ttft: 1.5, tpot: 1.1, itl: 1.1, e2el: 1.2, throughput: 1.2},
     max_input_tokens: 1000, max_output_tokens: 1000, max_running: 64}
"""
CONSTANTS = """
name: vllm
sources: {all: test}
entries:
  - since: "0.15"
    constants: {delay_fixed_s: {value: 0.5, bounds: [0, 1]}}
    fit: {source: test}
"""


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "experiment.yaml"
    path.write_text(EXPERIMENT)
    for kind, text in (("errors/serving", TABLE), ("engines/vllm", CONSTANTS)):
        profile = tmp_path / "profiles" / "calibrated" / f"{kind}.yaml"
        profile.parent.mkdir(parents=True)
        profile.write_text(text)
    return lambda *overrides: simulate(load_experiment(path, overrides))


def test_intervals_come_from_the_errors_of_measured_runs(run):
    result = run().summary.as_dict()
    low, high = result["intervals"]["mean_ttft_ms"]
    assert (result["mean_ttft_ms"] / low, high / result["mean_ttft_ms"]) == pytest.approx((1.5, 1.5))
    low, high = result["intervals"]["output_throughput"]
    assert high / result["output_throughput"] == pytest.approx(1.2)
    assert any("nine in ten of 40 measured runs" in warning for warning in result["warnings"])


def test_beyond_what_was_measured_they_are_wider_and_say_so(run):
    result = run("workload.lengths.input_tokens=2000").summary.as_dict()
    assert result["intervals"]["mean_ttft_ms"][1] / result["mean_ttft_ms"] == pytest.approx(1.5**2)
    said = " ".join(result["warnings"])
    assert "prompts of 2,000 tokens are beyond the 1,000 that were measured" in said
    assert "made 2.0 times wider" in said


def test_a_line_of_the_users_own_has_no_model_error(run):
    result = run("cost_model={kind: affine, base_s: 0.01}").summary.as_dict()
    assert "mean_ttft_ms" not in result["intervals"]


def test_fitted_constants_of_the_engines_name_hold_unless_switched_off(run):
    fitted, plain = run().summary, run("engine.calibration=none").summary
    later_s = fitted.latency["ttft"].mean_s - plain.latency["ttft"].mean_s
    assert later_s == pytest.approx(0.5 - 0.0177, abs=0.02)


def test_an_unknown_calibration_is_an_error_of_its_line(run):
    with pytest.raises(Exception, match=r"engine\.calibration: no profile 'vlm'"):
        run("engine.calibration=vlm")


def test_a_nearly_full_kv_cache_is_a_warning(run):
    def warnings(utilization):
        users = ("workload.arrivals.concurrency=24", "workload.num_requests=48", "engine.max_model_len=512")
        return run(f"engine.gpu_memory_utilization={utilization}", *users).summary.warnings

    assert any("saturation hinges on its size" in warning for warning in warnings(0.26))  # 361 blocks, 336 in use
    assert not any("saturation hinges" in warning for warning in warnings(0.28))  # 1171 blocks
