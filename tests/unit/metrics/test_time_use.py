"""Where the time of iterations goes: by resource, by operation, and to uneven experts."""

import pytest

from sim.experiment import experiment_of
from sim.metrics.time_use import TimeUse, combined
from sim.simulate import simulate
from sim.yamlfile import parse_yaml


def use_of(moe):
    text = f"""\
model: Qwen/Qwen3-30B-A3B
deployment: {{gpu: H100-SXM-80GB, parallelism: {{tp: 1, dp: 4, ep: 4}}}}
moe: {moe}
engine: {{max_model_len: 4096}}
workload:
  arrivals: {{kind: closed_loop, concurrency: 64}}
  lengths: {{kind: fixed, input_tokens: 512, output_tokens: 32}}
  num_requests: 200
"""
    return simulate(experiment_of(parse_yaml(text, "x.yaml"))).summary.time_use


def test_shares_sum_to_one():
    use = use_of("{}")
    assert sum(use.by_resource.values()) == pytest.approx(1)
    assert sum(use.by_operation.values()) == pytest.approx(1)


def test_a_popular_rank_costs_time_and_redundant_experts_win_it_back():
    skewed = "popularity: {kind: zipf, exponent: 1.0}"
    even, uneven = use_of("{}"), use_of(f"{{{skewed}}}")
    spread = use_of(f"{{{skewed}, placement: {{kind: eplb}}, num_redundant_experts: 32}}")
    assert 0 <= even.imbalance < 0.05  # chance alone makes one rank the most loaded
    assert uneven.imbalance > 10 * spread.imbalance
    assert uneven.imbalance < uneven.by_operation["experts"]


def test_pools_count_by_their_busy_time():
    dense, sparse = TimeUse({"memory": 1.0}, {"a": 1.0}), TimeUse({"link": 1.0}, {"a": 0.5, "b": 0.5}, 0.4)
    both = combined([dense, sparse], [3.0, 1.0])
    assert both == TimeUse({"memory": 0.75, "link": 0.25}, {"a": 0.875, "b": 0.125}, 0.1)
