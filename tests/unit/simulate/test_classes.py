"""Classes of requests from the YAML to the result."""

from __future__ import annotations

import pytest

from sim.experiment import experiment_of
from sim.simulate import simulate
from sim.yamlfile import parse_yaml

EXPERIMENT = """
model: Qwen/Qwen3-8B
deployment: {gpu: H100-SXM-80GB}
engine: {num_gpu_blocks_override: 1000, scheduler: {kind: chunked_prefill, max_num_seqs: 2, order: ORDER}}
cost_model: {kind: affine, base_s: 0.1}
workload:
  arrivals: {kind: poisson, rate: 2}
  num_requests: 400
  lengths: {kind: fixed, input_tokens: 100, output_tokens: 9}
  classes:
    - {name: urgent, share: 0.3, priority: 0, slo: {ttft_p95: 1 s}}
    - {name: patient, share: 0.7, priority: 5, slo: {e2e_p95: 1 min}}
"""


def result(order):
    return simulate(experiment_of(parse_yaml(EXPERIMENT.replace("ORDER", order), "classes.yaml"))).summary


@pytest.mark.parametrize("order", ["fcfs", "priority"])
def test_the_urgent_wait_less_if_the_scheduler_knows(order):
    summary = result(order)
    urgent, patient = (group.latency["ttft"].mean_s for group in summary.groups.classes)
    idle = "no scheduler serves by the priorities of classes: set engine.scheduler.order: priority"
    assert (idle in summary.warnings) == (order == "fcfs")
    assert (urgent < 0.5 * patient) == (order == "priority")


def test_goodput_is_by_the_objectives_of_each_class():
    summary = result("priority")
    assert summary.served.goodput == pytest.approx(sum(group.goodput for group in summary.groups.classes))
    assert set(summary.as_dict()["classes"]) == {"urgent", "patient"}
