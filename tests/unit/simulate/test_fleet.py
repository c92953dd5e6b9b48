"""Experiments whose replicas come and go: the same bytes again, pools of their own, and what is refused."""

import math

import pytest

from sim.errors import ConfigError
from sim.experiment import experiment_of
from sim.report.json import to_json
from sim.report.run import write
from sim.simulate import simulate
from sim.yamlfile import parse_yaml

HEAD = """
model: Qwen/Qwen3-8B
deployment: {gpu: H100-SXM-80GB, replicas: 2}
engine: {version: "0.19", num_gpu_blocks_override: 200}
cost_model: {kind: affine, base_s: 0.008, per_token_s: 2.0e-5, per_context_token_s: 2.2e-8}
lifecycle: {cold_start_s: 2}
workload: {arrivals: {kind: poisson, rate: 8}, lengths: {kind: preset, name: chat}, num_requests: 300}
prices: {gpu_hour_usd: 2.0}
"""
QUICK = "interval_s: 1, lag_s: 1, stabilization_down_s: 5"
SCALED = f"autoscaler: {{kind: queue_depth, target: 4, max_replicas: 4, {QUICK}}}\n"
BREAKING = "failures: {gpu: {mtbf_s: 20, repair_s: 4}, gpus_per_node: 1, in_flight: resume, max_retries: 9}\n"


def result_of(text):
    return simulate(experiment_of(parse_yaml(HEAD + text, "exp.yaml")))


def test_the_same_again():
    first, again = (result_of(SCALED + BREAKING).summary.as_dict() for _ in range(2))
    assert first["replica_losses"] > 3
    assert first["scale_events"] > 3
    assert first["retries"] > 0
    assert first["completed"] + first["failed"] + first["rejected"] == 300
    del first["wall_s"], again["wall_s"]
    assert to_json(first) == to_json(again)


def test_cost_follows_instance_time():
    summary = result_of(SCALED).summary
    assert summary.fleet is not None
    usd = summary.bill.usd_per_mtok_output * summary.served.output_tokens / 1e6
    assert usd == pytest.approx(2.0 * summary.fleet.gpu_hours, rel=0.01)  # hours from 0, tokens from the first arrival
    assert summary.fleet.gpu_hours < 4 * summary.simulated_s / 3600


def test_one_pool_may_scale_while_another_stays():
    pools = "pools: [{name: fixed, replicas: 1}, {name: scaled, replicas: 1, "
    result = result_of(pools + SCALED.strip() + "}]\n")
    assert result.lives is not None
    fixed = result.lives.where(result.lives.replica == 0)
    assert len(fixed.replica) == 1
    assert set(result.lives.replica.tolist()) > {0, 1}
    assert [pool["replicas"] for pool in result.summary.as_dict()["pools"]] == [1, 4]


def test_files_tell_of_instances(tmp_path):
    from pyarrow import parquet

    result = result_of(SCALED + BREAKING)
    write(result, tmp_path)
    instances = parquet.read_table(tmp_path / "instances.parquet").to_pydict()
    assert set(instances["state"]) >= {"starting", "ready", "down"}
    ready = parquet.read_table(tmp_path / "timeline.parquet").to_pydict()["ready"]
    assert min(ready) == 0
    assert max(ready) == pytest.approx(1)
    assert "retries" in parquet.read_table(tmp_path / "requests.parquet").column_names


def test_without_them_nothing_is_told_of_instances():
    assert not {"gpu_hours", "availability", "retries"} & set(result_of("").summary.as_dict())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SCALED.replace("max_replicas: 4", "max_replicas: 1"), "2, where the autoscaler keeps 1 to 1"),
        (SCALED.replace("max_replicas: 4", "max_replicas: 40000"), "at most 32,768 are simulated"),
        ("failures: {events: [{what: node, which: 2, at_s: 1, for_s: 1}], gpus_per_node: 1}\n", "there are 2, from 0"),
        ("failures: {events: [{what: drain, which: 2, at_s: 1}]}\n", "no replica has the number 2"),
        ("failures: {events: [{what: flood, at_s: 1}]}\n", "unknown what 'flood'; choose gpu, node"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(text, message):
    with pytest.raises(ConfigError, match=message) as refused:
        result_of(text)
    assert str(refused.value).startswith("exp.yaml:")


def test_who_comes_while_there_is_no_replica_is_not_turned_away_but_starts_one():
    to_zero = SCALED.replace("max_replicas: 4", "max_replicas: 4, scale_to_zero: true, idle_s: 3")
    text = HEAD.replace("{kind: poisson, rate: 8}", "{kind: bursts, rate: 2, burst_s: 5, pause_s: 20}")
    text = text.replace("{kind: preset, name: chat}", "{kind: fixed, input_tokens: 200, output_tokens: 20}")
    limited = to_zero + "admission: {kind: queue_limit, max_outstanding: 1000}\n"
    summary = simulate(experiment_of(parse_yaml(text + limited, "exp.yaml"))).summary
    assert summary.fleet is not None
    assert summary.fleet.ready_replicas_min == 0
    assert summary.served.completed == 300


def test_no_replica_is_busy_for_longer_than_it_is_there():
    """The last iteration outlives its requests, whose clients gave up."""
    workload = "workload: {arrivals: {kind: offline}, lengths: {kind: fixed, input_tokens: 50, output_tokens: 9},"
    impatient = HEAD.replace("workload: {", "costs: {}\nunused: {").split("costs:")[0] + workload
    text = impatient + " num_requests: 1, patience: {mean_s: 0.01}}\nfailures: {}\n"
    (pool,) = simulate(experiment_of(parse_yaml(text, "exp.yaml"))).summary.pools
    assert pool.busy_share <= 1
    assert pool.num_gpus == pytest.approx(2)


def test_a_run_lasts_until_the_last_request_waited_in_vain():
    lost = "failures: {in_flight: fail, events: [{what: node, at_s: 1, for_s: 1 h}]}\n"
    summary = result_of(lost).summary
    assert summary.served.failed + summary.served.rejected > 250
    assert summary.bill.num_gpus <= 2
    assert summary.served.duration_s > 300  # gateway_timeout_s


def test_users_without_a_pause_ask_again_at_once():
    closed = HEAD.replace("{kind: poisson, rate: 8}", "{kind: closed_loop, concurrency: 8}")
    limit = "admission: {kind: queue_limit, max_outstanding: 1}\n"
    eager = simulate(experiment_of(parse_yaml(closed + limit, "exp.yaml"))).context.warnings
    assert any("give workload.arrivals.think_s" in warning for warning in eager)
    patient = closed.replace("concurrency: 8", "concurrency: 8, think_s: 1") + limit
    warnings = simulate(experiment_of(parse_yaml(patient, "exp.yaml"))).context.warnings
    assert not any("think_s" in warning for warning in warnings)


MIXED = HEAD.replace("num_requests: 300", "num_requests: 60") + "admission: {kind: token_bucket, rate: 2, burst: 2, "


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("each: tenant}", "admission.each: no request has a tenant"),
        ("each: class}", "admission.each: no request has a class"),
        ("protect_priority: 0}", "admission.protect_priority: every request has a priority value of 0 or less"),
    ],
)
def test_admission_that_could_do_nothing_is_refused(option, message):
    with pytest.raises(ConfigError, match=message):
        simulate(experiment_of(parse_yaml(MIXED + option, "exp.yaml")))


def test_what_has_no_effect_is_said():
    router = "router: {kind: length_based, short_tokens: 9, short_replicas: 2}"
    said = " ".join(result_of(router).context.warnings)
    assert "all 2 replicas are below router.short_replicas" in said
    assert "lifecycle has no effect" in said
    assert "lifecycle" not in " ".join(result_of(SCALED).context.warnings)


def test_what_breaks_more_than_once_a_second_is_a_slip():
    with pytest.raises(ConfigError, match="failures.gpu.mtbf_s: expected a number of at least 1"):
        result_of(BREAKING.replace("mtbf_s: 20", "mtbf_s: 1 ms"))


def test_waiting_for_the_first_request_makes_no_more_accelerators():
    late = HEAD.replace("kind: poisson, rate: 8", "kind: poisson, rate: 0.02").replace("300}", "2}")
    result = simulate(experiment_of(parse_yaml(late + "failures: {}\n", "exp.yaml")))
    assert result.requests.arrival_s.min() > 10
    assert result.summary.bill.num_gpus == pytest.approx(2)


def test_a_run_in_which_no_replica_ever_serves_has_no_tokens_a_gpu():
    gone = "failures: {events: [{what: node, at_s: 0, for_s: 1 h}]}"
    values = result_of(gone).summary.as_dict()
    assert values["rejected"] == 300
    assert math.isnan(values["output_tok_s_per_gpu"])
