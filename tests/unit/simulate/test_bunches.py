"""Users of a closed loop who come in bunches are told of."""

import numpy as np
import pytest

from sim.experiment import experiment_of
from sim.simulate import simulate
from sim.units import format_seconds
from sim.yamlfile import parse_yaml

EXPERIMENT = """
model: Qwen/Qwen3-8B
deployment: {gpu: H100-SXM-80GB}
engine: {num_gpu_blocks_override: 4000, scheduler: {kind: chunked_prefill, max_num_batched_tokens: 200}}
cost_model: {kind: affine, base_s: 0.01}
workload:
  arrivals: {kind: closed_loop, OPTIONS}
  num_requests: 300
  lengths: {kind: exponential, input_tokens: 100, output_tokens: 50}
"""


def result(options):
    return simulate(experiment_of(parse_yaml(EXPERIMENT.replace("OPTIONS", options), "users.yaml")))


def told(options, words):
    return [each for each in result(options).summary.warnings if words in each]


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ("concurrency: 20, think_s: 5", 1),
        ("concurrency: 20, think_s: 5, think_distribution: exponential", 0),
        ("concurrency: 20", 0),
        ("concurrency: 1, think_s: 5", 0),
    ],
)
def test_equal_pauses_of_several_users(options, count):
    assert len(told(options, "all users pause equally long and so come in bunches")) == count


def test_the_wave_of_first_requests_and_the_percentile_without_it():
    run = result("concurrency: 50")
    later = np.sort(run.requests.arrival_s)[50]
    p95_s = np.percentile(run.requests.ttft_s[run.requests.arrival_s >= later], 95)
    assert p95_s < 0.9 * run.summary.latency["ttft"].percentile(95)
    words = f"all 50 users begin at once: without these first requests the TTFT p95 is {format_seconds(p95_s)};"
    assert f"{words} workload.arrivals.ramp_s spreads them" in run.summary.warnings


@pytest.mark.parametrize(
    "options",
    [
        "concurrency: 50, ramp_s: 5 s",
        "concurrency: 50, request_rate: 10",
        "concurrency: 2",  # two first requests are none of the slowest twentieth
        "concurrency: 200",  # half of the users have a second turn
    ],
)
def test_first_requests_that_come_one_by_one_or_are_few_or_nearly_all(options):
    assert not told(options, "at once")
