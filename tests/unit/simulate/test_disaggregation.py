"""Pools that prefill and pools that decode: what is decided for them, what is reported, and what is refused."""

import json
import math

import pytest
from pyarrow import parquet

from sim.errors import ConfigError
from sim.experiment import experiment_of
from sim.report import run as report
from sim.simulate import ready_pools, simulate
from sim.simulate.disaggregation import decided
from sim.yamlfile import parse_yaml

HEAD = """\
model: meta-llama/Llama-3.1-8B-Instruct
deployment: {gpu: H100-SXM-80GB}
engine: {max_model_len: 4096, num_gpu_blocks_override: 1000}
cost_model: {kind: affine, base_s: 0.01, per_token_s: 0, per_context_token_s: 0, per_seq_s: 0}
workload:
  arrivals: {kind: constant, rate: 5}
  lengths: {kind: fixed, input_tokens: 1000, output_tokens: 5}
  num_requests: 40
"""
POOLS = "pools:\n  - {name: p, role: prefill, replicas: 1}\n  - {name: d, role: decode, replicas: 2}\n"


def experiment(text):
    return experiment_of(parse_yaml(text, "fleet.yaml"))


@pytest.mark.parametrize(
    ("engine", "order", "first_token"),
    [
        ("vllm", "prefill_first", "decode"),
        ("sglang", "decode_first", "transfer"),
        ("tensorrt-llm", "prefill_first", "transfer"),
    ],
)
def test_what_is_left_open_is_as_the_engine_has_it(engine, order, first_token):
    asked = experiment(HEAD.replace("engine: {", f"engine: {{kind: {engine}, ") + POOLS)
    options = decided(asked, ready_pools(asked))
    assert (options.order, options.first_token) == (order, first_token)


def test_overlap_needs_blocks_first():
    asked = experiment(HEAD + POOLS + "disaggregation: {overlap: true}\n")
    assert decided(asked, ready_pools(asked)).order == "decode_first"
    with pytest.raises(ConfigError, match="overlap needs order decode_first"):
        experiment(HEAD + POOLS + "disaggregation: {overlap: true, order: prefill_first}\n")


def test_the_result_tells_of_the_transfers():
    options = "disaggregation: {first_token: prefill, bytes_per_s: 20 GB/s, efficiency: 0.5, latency_s: 1 ms}\n"
    result = simulate(experiment(HEAD + POOLS + options)).summary.as_dict()
    transfer_ms = 1000 * 131_072 / 10e9 * 1e3 + 1
    assert result["kv_transfers"] == 40
    assert math.isclose(result["mean_kv_transfer_ms"], transfer_ms)
    assert math.isclose(result["p99_kv_transfer_ms"], transfer_ms)
    assert math.isclose(result["kv_transfer_gb"], 40 * 0.131072)
    assert result["mean_kv_transfer_wait_ms"] == 0
    assert math.isclose(result["mean_ttft_ms"], 10)
    assert math.isclose(result["mean_e2el_ms"], 10 + transfer_ms + 4 * 10)
    prefill, decode = result["pools"]
    assert (prefill["completed"], decode["completed"]) == (40, 40)
    busy_s = 40 * (transfer_ms - 1) / 1e3
    assert math.isclose(prefill["kv_link_utilization"], busy_s / result["duration"])
    assert math.isclose(decode["kv_link_utilization"], busy_s / result["duration"] / 2)
    assert result["kv_link_utilization"] == prefill["kv_link_utilization"]


def test_runs_without_roles_do_not():
    assert not [key for key in simulate(experiment(HEAD)).summary.as_dict() if "kv_transfer" in key or "link" in key]


def test_a_slow_link_is_what_limits():
    slow = "disaggregation: {bytes_per_s: 0.5 GB/s, first_token: prefill}\n"
    summary = simulate(experiment(HEAD + POOLS + slow)).summary
    assert summary.binding.limit == "kv_link"
    result = summary.as_dict()
    one_ms = 1000 * 131_072 / (0.87 * 0.5e9) * 1e3 + 0.05
    assert math.isclose(result["mean_kv_transfer_wait_ms"], result["mean_kv_transfer_ms"] - one_ms)
    assert summary.latency["ttft"].mean_s < 0.011


def test_files_tell_of_both_replicas(tmp_path):
    result = simulate(experiment(HEAD.replace("rate: 5", "rate: 50") + POOLS))
    report.write(result, tmp_path)
    table = parquet.read_table(tmp_path / "requests.parquet")
    assert table.column_names[-2:] == ["prefill_replica", "transfer_s"]
    assert set(table["prefill_replica"].to_pylist()) == {0}
    assert set(table["replica"].to_pylist()) == {1, 2}
    moved = parquet.read_table(tmp_path / "transfers.parquet")
    assert moved["request"].to_pylist() == list(range(40))
    assert set(parquet.read_table(tmp_path / "timeline.parquet")["replica"].to_pylist()) == {0, 1, 2}
    events = json.loads((tmp_path / "trace.perfetto.json").read_text())["traceEvents"]
    begun = [event for event in events if event["ph"] == "b" and "request" not in event["name"]]
    answers = {(pid, name) for pid in (2, 3) for name in ("transfer", "decode")}
    assert {(event["pid"], event["name"]) for event in begun} == answers | {(1, "queue"), (1, "prefill")}
    assert json.loads((tmp_path / "manifest.json").read_text())["defaults"]["disaggregation.order"] == "prefill_first"


def test_both_sides_may_be_cut_differently():
    pools = "pools:\n  - {role: prefill, parallelism: {tp: 4}}\n  - {role: decode, parallelism: {dp: 2}, replicas: 2}\n"
    summary = simulate(experiment(HEAD + pools)).summary
    assert [pool.replicas for pool in summary.pools] == [1, 4]
    assert summary.served.completed == 40


def test_each_model_has_prefill_and_decode_replicas_of_its_own():
    pools = """
pools:
  - {name: a, role: prefill, share: 0.5}
  - {name: b, role: decode}
  - {name: c, role: prefill, model: Qwen/Qwen3-8B, share: 0.5}
  - {name: d, role: decode, model: Qwen/Qwen3-8B}
"""
    result = simulate(experiment(HEAD + pools))
    ends = set(zip(result.transfers.prefill_replica.tolist(), result.transfers.decode_replica.tolist(), strict=True))
    assert ends == {(0, 1), (2, 3)}
    assert result.summary.served.completed == 40
    a, b, c, d = (pool.completed for pool in result.summary.pools)
    assert (a, c) == (b, d)


def test_one_model_may_be_served_whole_beside_another():
    pools = "pools: [{role: prefill, share: 0.5}, {role: decode}, {model: Qwen/Qwen3-8B, share: 0.5}]\n"
    result = simulate(experiment(HEAD + pools))
    assert result.summary.served.completed == 40
    assert 0 < len(result.transfers.request) < 40


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("disaggregation: {}\n", "fleet.yaml:9: disaggregation: no pool has a role"),
        ("pools: [{role: prefill}]\n", "fleet.yaml:9: pools: pools of one model have roles prefill"),
        ("pools: [{role: prefill}, {}]\n", "pools of one model have roles both and prefill"),
        ("pools: [{role: prefill}, {role: decode, quantization: {kv_cache: fp8}}]\n", "keys and values have one type"),
        (
            "pools: [{role: prefill}, {role: decode, engine: {scheduler: {kind: static, batch_size: 4}}}]\n",
            "pool1: prefill and decode are not separated with scheduler static",
        ),
        (
            "pools: [{role: prefill, gpu: L40S}, {role: decode}]\ndisaggregation: {link: interconnect}\n",
            "fleet.yaml:10: disaggregation.link: the profile of L40S has no interconnect bandwidth",
        ),
        ("pools: [{role: prefil}]\n", "fleet.yaml:9: pools.0.role:"),
        ("pools: [{role: prefill}, {role: decode}]\nfailures: {}\n", "fleet.yaml:10: failures: not simulated where"),
    ],
)
def test_what_does_not_go_together_is_refused(lines, message):
    with pytest.raises(ConfigError) as problem:
        simulate(experiment(HEAD + lines))
    assert message in str(problem.value)
