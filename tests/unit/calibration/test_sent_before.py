import pytest

from calibration.cases.serving import ServingCase
from calibration.experiment.of_case import experiment_of_case

ROW = {
    "case_id": "one",
    "source": "github:IOG-Foundation/llm-inference-benchmarks@4990a80:results/one.json",
    "engine": "vllm",
    "engine_version": "0.8.5",
    "gpu": "H100-PCIe-80GB",
    "n_gpus": "1",
    "tp": "1",
    "mode": "agg",
    "model": "meta-llama/Meta-Llama-3-8B-Instruct",
    "weight_dtype": "fp16",
    "input_len": "205.8",
    "output_len": "201.8",
    "len_distribution": "sharegpt",
    "load_type": "rate",
    "load_value": "16.0",
    "num_requests": "200",
    "quality": "ok",
}


def hits(**cells):
    experiment = experiment_of_case(ServingCase(ROW | cells)).experiment
    shared = experiment.workload.shared_prefix
    assert experiment.engine.prefix_caching == (shared is not None)
    return None if shared is None else (shared.tokens, shared.groups)


def test_prompts_of_the_run_before_are_found_again():
    assert hits() == (1024, 1)  # as long as the longest prompt: all of each is found
    assert hits(load_value="1.0") == (1024, 1)


def test_the_first_run_finds_none():
    assert hits(load_value="32.0") is None


@pytest.mark.parametrize(
    "cells",
    [
        {"gpu": "RTX-4090-24GB"},  # 4 GB beside 16 GB of weights hold 30 thousand of 82 thousand tokens
        {"model": "Qwen/QwQ-32B-Preview"},
    ],
)
def test_none_are_found_where_the_cache_does_not_hold_a_whole_run(cells):
    assert hits(**cells) is None


def test_other_series_send_prompts_of_their_own():
    assert hits(source="github:another/series") is None
