"""The five steps by hand."""

import numpy as np
import pytest
from handmade import requests_of

from sim.__main__ import main
from sim.errors import ConfigError, InfeasibleError
from sim.experiment import load_experiment
from sim.study.plan import Fit, _better, in_flight, plan_of

EXPERIMENT = """
model: meta-llama/Llama-3.1-8B-Instruct
deployment: {gpu: L40S, quantization: {weights: bf16}}
engine: {kind: vllm, version: "0.19", max_model_len: 8192}
workload: {arrivals: {kind: poisson, rate: 2}, lengths: {kind: fixed, input_tokens: 900, output_tokens: 100}, num_requests: 60}
slo: {ttft_p95: 2 s}
"""  # noqa: E501


@pytest.fixture
def experiment(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(EXPERIMENT)
    return lambda *overrides: load_experiment(path, overrides)


def test_the_steps_of_an_8b(experiment):
    plan = plan_of(experiment(), concurrency=40)
    assert plan.weights_bytes["bf16"] == pytest.approx(2 * 8.03e9, rel=0.001)
    assert plan.weights_bytes["int4"] < plan.weights_bytes["fp8"] < plan.weights_bytes["bf16"]
    assert (plan.context_tokens, plan.concurrency, plan.concurrency_from) == (1000, 40, "as given")
    assert plan.kv_bytes_per_token == 32 * 2 * 8 * 128 * 2
    assert plan.kv_bytes == plan.kv_bytes_per_token * 40_000
    assert plan.as_dict()["kv_bytes_with_headroom"] == pytest.approx([1.3 * plan.kv_bytes, 1.5 * plan.kv_bytes])
    assert 35 < plan.validation["running_mean"] <= 40
    assert plan.validation["slo"]["ttft_p95"]["met"]


def test_more_requests_than_a_replica_holds_take_more_replicas(experiment):
    few, many = (plan_of(experiment(), concurrency=count, context_tokens=8000).fits[0] for count in (4, 60))
    assert few.sequences == many.sequences
    assert (few.replicas, many.replicas) == (1, int(np.ceil(60 * 1.3 / many.sequences)))


def test_what_does_not_fit_says_why(experiment):
    plan = plan_of(experiment("model=meta-llama/Llama-3.3-70B-Instruct", "deployment.gpu=H100"), concurrency=4)
    assert "leave nothing for the KV cache" in plan.fits[0].why_not
    assert plan.chosen.tp > 1


def test_nothing_fits(experiment):
    with pytest.raises(InfeasibleError):
        plan_of(experiment("model=meta-llama/Meta-Llama-3.1-405B"), concurrency=4)


def test_pools_are_refused(experiment):
    with pytest.raises(ConfigError, match="one deployment"):
        plan_of(experiment("pools=[{replicas: 1}, {replicas: 1}]"))


def test_when_a_larger_replica_is_worth_it():
    one = Fit(1, replicas=4, tok_s_per_gpu=100)
    assert _better(Fit(2, replicas=1, tok_s_per_gpu=50), one), "half the GPUs"
    assert not _better(Fit(2, replicas=2, tok_s_per_gpu=105), one), "as many, hardly faster"
    assert _better(Fit(2, replicas=2, tok_s_per_gpu=120), one), "as many, faster"
    assert not _better(Fit(8, replicas=1, tok_s_per_gpu=200), one), "twice as many"


def test_in_flight_by_time():
    # one from 0 to 10 s, a second from 4 to 5 s: two at once for a tenth of the time
    requests = requests_of((0.0, 0.0, 1.0, 10.0, 2), (4.0, 4.0, 4.5, 5.0, 2))
    assert in_flight(requests, 0.89) == 1
    assert in_flight(requests, 0.95) == 2


def test_the_command(experiment, tmp_path, capsys):
    assert main(["plan", str(tmp_path / "p.yaml"), "--concurrency", "8"] if experiment() else []) == 0
    shown = capsys.readouterr().out
    for title in ("1. Weights", "2. KV cache", "3. Overhead", "4. Does it fit", "5. Validation", "-> 1 x TP1"):
        assert title in shown
    assert main(["plan", str(tmp_path / "p.yaml"), "--context", "0"]) == 2
    assert "at least 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("autoscaler={kind: queue_depth, target: 4, max_replicas: 4}", "autoscaler: a plan is with all replicas ready"),
        ("failures={}", "failures: a plan is with all replicas ready"),
    ],
)
def test_a_plan_knows_no_replicas_that_come_and_go(experiment, override, message):
    with pytest.raises(ConfigError, match=message):
        plan_of(experiment(override), concurrency=40)


def test_a_context_that_no_engine_accepts_is_refused(experiment):
    with pytest.raises(ConfigError, match="engine.max_model_len: 8,192, less than the context of 8,193 tokens"):
        plan_of(experiment(), concurrency=40, context_tokens=8193)
