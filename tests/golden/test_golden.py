"""Every shipped experiment and every policy beside the result it had when last looked at.

``pytest tests/golden --update-golden`` writes the results anew; the difference is for a reader to judge.
"""

import json
from pathlib import Path

import pytest

from sim.admission import Admission
from sim.autoscaler import Autoscaler
from sim.cost import CostModel
from sim.experiment import experiment_of, load_experiment
from sim.policy import kinds_of
from sim.router import Router
from sim.scheduler import Scheduler
from sim.simulate import simulate
from sim.speculation import Speculation
from sim.workload.arrivals import ArrivalPolicy
from sim.workload.lengths import LengthPolicy
from sim.yamlfile import parse_yaml

FOLDER = Path(__file__).parent
EXPERIMENTS = sorted((FOLDER.parents[1] / "experiments").glob("*.yaml"))

AFFINE = "{kind: affine, base_s: 0.008, per_token_s: 2.0e-5, per_context_token_s: 2.2e-8}"
PARTS = {
    "admission": "null",
    "cost_model": AFFINE,
    "engine.scheduler": "{kind: chunked_prefill, max_num_batched_tokens: 512, max_num_seqs: 16}",
    "engine.speculative": "null",
    "router": "{kind: least_loaded}",
    "autoscaler": "",
    "workload.arrivals": "{kind: poisson, rate: 8}",
    "workload.lengths": "{kind: fixed, input_tokens: 300, output_tokens: 60}",
}
"""An experiment in which each part is replaced by every policy of its kind in turn."""

EXAMPLES = {
    "admission": {
        "queue_limit": "{kind: queue_limit, max_outstanding: 2}",
        "slo_aware": "{kind: slo_aware, ttft_s: 0.05, prefill_tokens_per_s: 8000, protect_priority: -1}",
        "token_bucket": "{kind: token_bucket, rate: 6, burst: 5}",
    },
    "cost_model": {"affine": AFFINE, "roofline": "{kind: roofline}"},
    "engine.scheduler": {
        "chunked_prefill": "{kind: chunked_prefill, max_num_batched_tokens: 256, max_num_seqs: 8}",
        "continuous": "{kind: continuous, max_num_batched_tokens: 1024, max_num_seqs: 8}",
        "inflight": "{kind: inflight, max_num_batched_tokens: 1024, max_num_seqs: 8}",
        "sglang": "{kind: sglang, max_num_batched_tokens: 256, max_num_seqs: 8, schedule_conservativeness: 0.3}",
        "slots": "{kind: slots, max_num_batched_tokens: 256, max_num_seqs: 8, unified: true}",
        "static": "{kind: static, batch_size: 8, max_wait_s: 1 s}",
        "token_budget": "{kind: token_budget, max_num_batched_tokens: 1024, max_waiting_tokens: 10}",
    },
    "engine.speculative": {
        "draft_model": "{kind: draft_model, model: Qwen/Qwen3-0.6B, num_speculative_tokens: 4, acceptance: 0.7}",
        "eagle": "{kind: eagle, num_speculative_tokens: 3, acceptance: [0.7, 0.5, 0.3]}",
        "mtp": "{kind: mtp, num_speculative_tokens: 1, acceptance: 0.8}",
        "ngram": "{kind: ngram, num_speculative_tokens: 3, acceptance: 0.4, draft_s: 1 ms}",
    },
    "router": {
        "kv_aware": "{kind: kv_aware}",
        "least_kv": "{kind: least_kv}",
        "least_loaded": "{kind: least_loaded}",
        "least_tokens": "{kind: least_tokens}",
        "length_based": "{kind: length_based, short_tokens: 300, short_replicas: 1}",
        "power_of_two": "{kind: power_of_two}",
        "prefix_affinity": "{kind: prefix_affinity, balance_abs_threshold: 2}",
        "queue_depth": "{kind: queue_depth, staleness_s: 0.1, latency_s: 5 ms}",
        "random": "{kind: random}",
        "round_robin": "{kind: round_robin}",
        "session_affinity": "{kind: session_affinity}",
        "weighted": "{kind: weighted}",
    },
    "autoscaler": {
        "cpu_utilization": "{kind: cpu_utilization, target: 0.3, cores_per_gpu: 4, max_replicas: 5}",
        "forecast": "{kind: forecast, target: 3, ahead_s: 4, window_s: 4, max_replicas: 5}",
        "gpu_utilization": "{kind: gpu_utilization, max_replicas: 5}",
        "kv_use": "{kind: kv_use, target: 0.3, max_replicas: 5}",
        "queue_depth": "{kind: queue_depth, target: 4, max_replicas: 5}",
        "running_requests": "{kind: running_requests, target: 4, max_replicas: 5}",
        "schedule": '{kind: schedule, replicas_from: {"08:00": 1, "23:59": 3}, start_hour: 23.98, max_replicas: 5}',
        "tokens_per_s": "{kind: tokens_per_s, target: 1000, max_replicas: 5}",
        "ttft": "{kind: ttft, target_s: 50 ms, max_replicas: 5}",
    },
    "workload.arrivals": {
        "bursts": "{kind: bursts, rate: 8, burst_s: 1 s, pause_s: 2 s}",
        "clients": "{kind: clients, rate: 8, clients: [{weight: 3, lengths: {kind: preset, name: chat}},"
        " {name: batch, cv: 4, lengths: {kind: fixed, input_tokens: 900, output_tokens: 40}}]}",
        "closed_loop": "{kind: closed_loop, concurrency: 12, think_s: 0.5}",
        "constant": "{kind: constant, rate: 8}",
        "diurnal": "{kind: diurnal, profile: rag, rate: 8}",
        "flash_crowd": "{kind: flash_crowd, rate: 4, at_s: 5 s, factor: 5, rise_s: 2 s, hold_s: 4 s, fall_s: 2 s}",
        "gamma": "{kind: gamma, rate: 8, cv: 3}",
        "offline": "{kind: offline}",
        "poisson": "{kind: poisson, rate: 8}",
        "sessions": "{kind: sessions, rate: 2, turns: 4, think_s: 2}",
        "trace": "{kind: trace, path: ../../experiments/traces/assistant_sessions.jsonl}",
    },
    "workload.lengths": {
        "exponential": "{kind: exponential, input_tokens: 300, output_tokens: 60}",
        "fixed": "{kind: fixed, input_tokens: 300, output_tokens: 60}",
        "lognormal": "{kind: lognormal, input_tokens: {median: 300, p90: 900}, output_tokens: {median: 60, p90: 200}}",
        "preset": "{kind: preset, name: chat}",
        "quantiles": "{kind: quantiles, input_tokens: {0: 10, 0.5: 300, 1: 900}, output_tokens: {0: 1, 1: 99}}",
        "uniform": "{kind: uniform, input_tokens: {low: 10, high: 600}, output_tokens: {low: 1, high: 120}}",
    },
}
COMBINED = {
    "hybrid windows": """
model: google/gemma-3-12b-it
deployment: {gpu: L40S}
engine: {version: "0.19", max_model_len: 16384, scheduler: {kind: chunked_prefill, max_num_batched_tokens: 2048}}
workload:
  num_requests: 100
  arrivals: {kind: poisson, rate: 6}
  lengths: {kind: uniform, input_tokens: {low: 500, high: 9000}, output_tokens: {low: 20, high: 400}}
""",
    "linear states": """
model: Qwen/Qwen3-Next-80B-A3B-Instruct
deployment: {gpu: H100-SXM-80GB, parallelism: {tp: 4}}
engine:
  version: "0.19"
  max_model_len: 16384
  speculative: {kind: ngram, num_speculative_tokens: 2, acceptance: 0.6}
workload:
  num_requests: 100
  arrivals: {kind: poisson, rate: 20}
  lengths: {kind: uniform, input_tokens: {low: 500, high: 9000}, output_tokens: {low: 20, high: 400}}
""",
    "kv_offload": """
model: Qwen/Qwen3-8B
deployment: {gpu: H100-SXM-80GB}
engine:
  version: "0.19"
  num_gpu_blocks_override: 400
  kv_offload: {tiers: [{capacity: 1 GiB}, {capacity: 4 GiB, bandwidth: 5 GB/s}]}
workload:
  num_requests: 200
  arrivals: {kind: sessions, rate: 2, turns: 4, think_s: 2}
""",
    "swap": """
model: Qwen/Qwen3-8B
deployment: {gpu: H100-SXM-80GB}
engine: {version: "0.6", num_gpu_blocks_override: 300, scheduler: {kind: continuous, preemption_mode: swap}}
workload:
  num_requests: 200
  arrivals: {kind: poisson, rate: 20}
  lengths: {kind: uniform, input_tokens: {low: 10, high: 600}, output_tokens: {low: 100, high: 400}}
""",
    "drafts on decode replicas": """
model: Qwen/Qwen3-8B
deployment: {gpu: H100-SXM-80GB}
engine:
  version: "0.19"
  num_gpu_blocks_override: 400
  speculative: {kind: ngram, num_speculative_tokens: 3, acceptance: 0.5}
pools: [{name: p, role: prefill, replicas: 2}, {name: d, role: decode}]
workload:
  num_requests: 200
  arrivals: {kind: poisson, rate: 12}
  lengths: {kind: uniform, input_tokens: {low: 10, high: 600}, output_tokens: {low: 1, high: 120}}
""",
    "eviction": """
model: Qwen/Qwen3-8B
deployment: {gpu: H100-SXM-80GB}
engine: {kind: sglang, num_gpu_blocks_override: 6000, eviction: slru}
workload:
  num_requests: 200
  arrivals: {kind: sessions, rate: 2, turns: 4, think_s: 2}
"""
}
"""Engines with several features at once, with affine costs."""
KINDS = {
    "admission": ("sim.admission", Admission),
    "autoscaler": ("sim.autoscaler", Autoscaler),
    "cost_model": ("sim.cost", CostModel),
    "engine.scheduler": ("sim.scheduler", Scheduler),
    "engine.speculative": ("sim.speculation", Speculation),
    "router": ("sim.router", Router),
    "workload.arrivals": ("sim.workload.arrivals", ArrivalPolicy),
    "workload.lengths": ("sim.workload.lengths", LengthPolicy),
}


MONEY = ("price", "cost_usd_per_mtok_output", "energy_j_per_output_tok", "gpu_power_w", "facility_power_w")
"""Prices and power change with published figures, and have tests of their own."""
DERIVED = ("wall_s", "intervals", "iteration_time")
"""What follows from the rest and from fitted constants, and has tests of its own."""


def _judged(values):
    """Return the *values*, of the run and of its pools, that only a change of behaviour changes."""
    left = {key: value for key, value in values.items() if key not in (*DERIVED, *MONEY)}
    if "pools" in left:
        left["pools"] = [_judged(pool) for pool in left["pools"]]
    return left


def _check(name, result, update):
    values = _judged(result.summary.as_dict())
    path = FOLDER / f"{name}.json"
    if update:
        path.write_text(json.dumps(values, indent=1) + "\n")
    golden = _judged(json.loads(path.read_text()))
    numbers = {key for key, value in golden.items() if isinstance(value, float)}
    assert {key: values[key] for key in numbers} == pytest.approx(
        {key: golden[key] for key in numbers}, rel=1e-9, nan_ok=True
    )
    assert {key: value for key, value in values.items() if key not in numbers} == {
        key: value for key, value in golden.items() if key not in numbers
    }


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_experiment(path, update_golden):
    _check(f"experiments/{path.stem}", simulate(load_experiment(path)), update_golden)


@pytest.mark.parametrize("part", KINDS)
def test_every_policy_has_an_example(part):
    assert set(EXAMPLES[part]) == set(kinds_of(*KINDS[part]))


@pytest.mark.parametrize(("part", "kind"), [(part, kind) for part in EXAMPLES for kind in EXAMPLES[part]])
def test_policy(part, kind, update_golden):
    parts = PARTS | {part: EXAMPLES[part][kind]}
    fast = ", interval_s: 1 s, lag_s: 1 s, stabilization_down_s: 5 s}"
    scaled = f"lifecycle: {{cold_start_s: 2}}\nautoscaler: {(parts['autoscaler'] or '')[:-1]}{fast}"
    autoscaler = scaled if parts["autoscaler"] else ""
    lengths = "" if kind in ("clients", "sessions", "trace") else f"lengths: {parts['workload.lengths']}"
    text = f"""
model: {"XiaomiMiMo/MiMo-7B-Base" if kind == "mtp" else "Qwen/Qwen3-8B"}
deployment: {{gpu: H100-SXM-80GB, replicas: 2}}
engine:
  version: "0.19"
  scheduler: {parts["engine.scheduler"]}
  speculative: {parts["engine.speculative"]}
  num_gpu_blocks_override: 200
cost_model: {parts["cost_model"]}
router: {parts["router"]}
admission: {parts["admission"]}
{autoscaler}
workload:
  num_requests: 200
  arrivals: {parts["workload.arrivals"]}
  {lengths}
"""
    experiment = experiment_of(parse_yaml(text, str(FOLDER / "policy.yaml")))
    _check(f"{part}.{kind}", simulate(experiment), update_golden)


@pytest.mark.parametrize("name", COMBINED)
def test_combination(name, update_golden):
    text = f"{COMBINED[name]}cost_model: {AFFINE}\n"
    result = simulate(experiment_of(parse_yaml(text, str(FOLDER / "combined.yaml"))))
    _check(f"combined/{name.replace(' ', '_')}", result, update_golden)
