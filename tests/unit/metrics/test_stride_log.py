"""Rows of strides are packed; no run that is accepted has cells that do not fit."""

import json

import pytest

from sim.experiment import experiment_of
from sim.simulate import simulate
from sim.yamlfile import parse_yaml


@pytest.mark.parametrize("scheduler", ["chunked_prefill", "continuous", "static"])
@pytest.mark.parametrize(("prompt", "answer"), [(3 * 10**9, 2), (10**12, 2), (2, 3 * 10**9)])
def test_tokens_blocks_and_iterations_may_be_billions(scheduler, prompt, answer):
    limits = {"batch_size": 2} if scheduler == "static" else {"max_num_seqs": 2, "max_num_batched_tokens": 10**13}
    written = {
        "model": "Qwen/Qwen3-8B",
        "deployment": {"gpu": "L40S"},
        "cost_model": {"kind": "affine", "base_s": 1e-9},
        "engine": {
            "num_gpu_blocks_override": 2**40,
            "block_size": 4,
            "prefix_caching": False,
            "max_model_len": 10**13,
            "scheduler": {"kind": scheduler, **limits},
        },
        "workload": {
            "num_requests": 2,
            "arrivals": {"kind": "offline"},
            "lengths": {"kind": "fixed", "input_tokens": prompt, "output_tokens": answer},
        },
    }
    result = simulate(experiment_of(parse_yaml(json.dumps(written), "large.yaml")))
    assert result.requests.completed.all()
    assert (result.strides.prefill_tokens.sum(), result.strides.emitted.sum()) == (2 * prompt, 2 * (answer - 1))
    assert result.strides.kv_blocks.max() == 2 * -(-(prompt + answer - 1) // 4)
