"""A real trace over eight replicas: who follows prefixes hits more, who weighs loads against that waits less."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import SHARED

from sim.experiment import experiment_of
from sim.simulate import play, ready_pools, simulate
from sim.yamlfile import parse_yaml

TRACE = SHARED / "data" / "traces" / "mooncake_conversation_trace.jsonl"
EXPERIMENT = """
model: meta-llama/Llama-3.1-8B-Instruct
deployment: {{gpu: H100-SXM-80GB, replicas: 8}}
engine: {{version: "0.19", max_model_len: 131072}}
router: {{kind: {router}}}
workload:
  arrivals: {{kind: trace, path: {trace}, jitter: auto, speedup: 4}}
  num_requests: 1500
"""
ROUTERS = ("round_robin", "prefix_affinity", "kv_aware")


pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def runs():
    texts = {router: EXPERIMENT.format(router=router, trace=TRACE) for router in ROUTERS}
    return {router: simulate(experiment_of(parse_yaml(text, "trace.yaml"))) for router, text in texts.items()}


def test_hits_rise_with_affinity(runs):
    hits = {router: run.summary.kv.prefix_hit_rate for router, run in runs.items()}
    assert hits["round_robin"] < 0.08
    assert hits["prefix_affinity"] > 2.5 * hits["round_robin"]
    assert 1.5 * hits["round_robin"] < hits["kv_aware"] < hits["prefix_affinity"]


def test_but_hot_spots_cost_more_than_the_last_hits_save(runs):
    first_s = {router: run.requests.ttft_s for router, run in runs.items()}
    mean_s = {router: np.mean(times_s) for router, times_s in first_s.items()}
    assert mean_s["kv_aware"] < mean_s["prefix_affinity"] < mean_s["round_robin"] / 2
    last_s = {router: np.percentile(times_s, 99) for router, times_s in first_s.items()}
    assert last_s["kv_aware"] < 0.7 * last_s["prefix_affinity"]


def test_a_router_knows_nearly_what_it_will_hit():
    """What `kv_aware` takes to be cached is cached, but for blocks evicted since, where nothing waits for long.

    In a queue more is found: what was computed in the meantime.
    """
    text = EXPERIMENT.format(router="kv_aware", trace=TRACE).replace("speedup: 4", "speedup: 2")
    experiment = experiment_of(parse_yaml(text, "trace.yaml"))
    played = play(experiment, ready_pools(experiment))
    expected = sum(request.expected_hit_tokens for request in played.traffic.requests)
    found = played.requests.cached_tokens.sum()
    assert found == pytest.approx(expected, rel=0.03)
