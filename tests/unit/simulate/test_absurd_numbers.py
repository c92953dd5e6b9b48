"""Counts and spreads that no machine could simulate are refused at their line, before anything is made of them."""

import pytest

from sim.__main__ import main
from sim.errors import UserError

EXPERIMENT = """\
model: meta-llama/Llama-3.1-8B-Instruct
deployment: {gpu: H100-SXM-80GB}
workload:
  arrivals: {kind: poisson, rate: 4}
  lengths: {kind: fixed, input_tokens: 64, output_tokens: 8}
  num_requests: 5
"""
UNIFORM = "{kind: uniform, input_tokens: {low: 1, high: 10000000000000000000}, output_tokens: {low: 1, high: 2}}"
LOGNORMAL = "{kind: lognormal, input_tokens: {mean: 20, sigma: 1e9}, output_tokens: {mean: 20, sigma: 1}}"
AXIS = "workload.arrivals.rate: {low: 1, high: 2}"
MANY_AXES = ", ".join(f"axis.number{index}: [1, 2]" for index in range(1001))
BURSTS = "{kind: bursts, rate: 1, burst_s: 1, pause_s: 1, sigma: 1e9}"
SESSIONS = "{kind: sessions, rate: 1, passages: 1, corpus: 1000000000000}"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("deployment.replicas=1000000000000", "1,000,000,000,000 accelerators: at most 32,768 are simulated"),
        ("deployment.parallelism.pp=1000000000000", "expected a number of at most 4096"),
        ("engine.max_captured_batch=100000000", "engine.max_captured_batch: expected a number of at most 1e+06"),
        ("engine.captured_batches=[100000000000]", "engine.captured_batches.0: expected a number of at most 1e+06"),
        ("engine.flags=--enable-prefix-caching --cuda-graph-sizes 100000000", "engine.max_captured_batch: expected a"),
        ("workload.num_requests=1000000000000", "expected a number of at most 1e+07"),
        ("workload.arrivals.max_concurrency=1000000000000", "expected a number of at most 1e+07"),
        ("workload.arrivals={kind: closed_loop, concurrency: 1000000000000}", "expected a number of at most 1e+07"),
        ("workload.arrivals.rate=1e-17", "expected a number of at least 1e-06"),
        (f"workload.arrivals={BURSTS}", "expected a number of at most 5"),
        (f"workload={{arrivals: {SESSIONS}}}", "expected a number of at most 1e+07"),
        (f"sweep={{kind: sobol, num_points: {2**40}, {AXIS}}}", "expected a number of at most 100000"),
        (f"sweep={{kind: sobol, num_points: 2, {MANY_AXES}}}", "1001 axes: at most 1000 are sampled"),
        (f"workload.lengths={UNIFORM}", "expected a number between 1e-18 and 1e+18"),
        (f"workload.lengths={LOGNORMAL}", "expected a number of at most 10"),
        ("cost_model={kind: affine, base_s: 1e308}", "expected a number between 1e-18 and 1e+18"),
        ("cost_model={kind: roofline, memory_factor: 1e-320}", "expected a number between 1e-18 and 1e+18"),
        (
            "workload.lengths={kind: fixed, input_tokens: 9, output_tokens: 1000000000000}",
            "workload: every request has at least 1000000000009 tokens, more than max_model_len 131072",
        ),
    ],
)
def test_refused_in_one_line(tmp_path, capsys, setting, message):
    path = tmp_path / "experiment.yaml"
    path.write_text(EXPERIMENT)
    assert main(["run", str(path), "--quiet", "--set", setting]) == UserError.exit_code
    output, errors = capsys.readouterr()
    assert (output, errors.count("\n")) == ("", 1)
    assert message in errors


@pytest.mark.parametrize("option", ["--pp", "--max-model-len"])
def test_sizes_are_refused_likewise(capsys, option):
    with pytest.raises(SystemExit) as ended:
        main(["size", "--model", "Qwen/Qwen3-8B", "--gpu", "L40S", option, "99999999999999999999"])
    assert ended.value.code == UserError.exit_code
    assert "99999999999999999999" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ("", "answers take 10,000,000,001 s of the replicas' time to write: at most 268,435,456 are counted"),
        (
            ", speculative: {kind: ngram, num_speculative_tokens: 1, acceptance: 0.5}",
            "workload: a request has 1,000,000,000,064 tokens: with drafts, at most 67,108,864 are simulated",
        ),
    ],
)
def test_answers_without_end_are_refused_before_memory_ends(tmp_path, capsys, engine, message):
    path = tmp_path / "experiment.yaml"
    path.write_text(EXPERIMENT.replace("output_tokens: 8", "output_tokens: 1000000000000"))
    blocks = f"engine={{num_gpu_blocks_override: {2**40}, max_model_len: {2 * 10**12}{engine}}}"
    settings = ("--set", blocks, "--set", "cost_model={kind: affine, base_s: 0.01}", "--set", "workload.num_requests=1")
    assert main(["run", str(path), "--quiet", *settings]) == UserError.exit_code
    output, errors = capsys.readouterr()
    assert (output, errors.count("\n")) == ("", 1)
    assert message in errors
