"""What is known of two deployments, and that the comparison says why."""

import pytest

from sim.experiment import experiment_of
from sim.study.compare import compare, play_seeds
from sim.yamlfile import parse_yaml

OFFLINE = """
model: meta-llama/Llama-3.3-70B-Instruct
deployment: {gpu: H100-SXM-80GB, quantization: {weights: fp8}}
engine: {kind: vllm, version: "0.19", max_model_len: 4096, gpu_memory_utilization: 0.95}
workload: {arrivals: {kind: offline}, lengths: {kind: fixed, input_tokens: 500, output_tokens: 300}, num_requests: 300}
"""


def side(name, *overrides):
    document = parse_yaml(OFFLINE, name)
    for assignment in overrides:
        document = document.override(assignment)
    return play_seeds(name, experiment_of(document), (1,))


def test_one_h200_against_one_h100_is_room_for_the_kv_cache():
    comparison = compare([side("H100"), side("H200", "deployment.gpu=H200")])
    assert 3.5 < comparison.differences[0]["output_throughput"].ratio < 6  # published: about 4.6
    text = "\n".join(comparison.sentences())
    assert "H100 has a queue for KV blocks" in text
    assert comparison.base.anatomy.waits["KV blocks"] > 0.9


@pytest.mark.parametrize("rate", [16, 20])
def test_two_of_tp4_serve_more_than_one_tp8_which_holds_more_context(rate):
    traffic = (
        f"workload.arrivals={{kind: poisson, rate: {rate}}}",
        "workload.lengths={kind: preset, name: chat}",
        "engine.max_model_len=16384",
    )
    two = side("2 x TP4", "deployment.parallelism.tp=4", "deployment.replicas=2", *traffic)
    one = side("TP8", "deployment.parallelism.tp=8", *traffic)
    comparison = compare([two, one])
    assert comparison.differences[0]["mean_tpot_ms"].ratio > 1.2
    assert one.anatomy.kv_tokens > two.anatomy.kv_tokens  # in one place, at that
    assert one.anatomy.operations_s["all-reduce"] > two.anatomy.operations_s["all-reduce"]


def test_a_pipeline_beats_tensor_parallelism_over_pcie():
    tensors = side("TP8", "deployment.gpu=L4", "deployment.parallelism.tp=8")
    stages = side("PP4 x TP2", "deployment.gpu=L4", "deployment.parallelism={tp: 2, pp: 4}")
    comparison = compare([tensors, stages])
    assert comparison.differences[0]["output_throughput"].ratio > 1.2
    assert "less in all-reduce" in "\n".join(comparison.sentences())
