"""Blocks that are loaded from a tier delay one iteration, also where no prompt is computed in it."""

import json

import numpy as np
import pytest

from sim.experiment import experiment_of
from sim.simulate import simulate
from sim.yamlfile import parse_yaml

TIERS = {"tiers": [{"capacity": "8 GiB", "bandwidth": 1e9}]}
DRAFTS = {
    "model": "Qwen/Qwen3-8B",
    "engine": {
        "num_gpu_blocks_override": 150,
        "kv_offload": TIERS,
        "speculative": {"kind": "ngram", "num_speculative_tokens": 3, "acceptance": 0.5, "draft_s": 0.001},
    },
    "arrivals": {"kind": "poisson", "rate": 4},
}
STATES = {
    "model": "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "engine": {"kind": "tensorrt-llm", "num_gpu_blocks_override": 150, "kv_offload": TIERS},
    "arrivals": {"kind": "closed_loop", "concurrency": 40},
}


def served(stride, case):
    """Let a decode replica, whose tier has the blocks of others with the same prefix, take in prompts."""
    written = {
        "model": case["model"],
        "deployment": {"gpu": "H200-SXM-141GB", "parallelism": {"tp": 4}},
        "engine": case["engine"],
        "pools": [{"name": "p", "role": "prefill", "replicas": 2}, {"name": "d", "role": "decode"}],
        "workload": {
            "num_requests": 40,
            "arrivals": case["arrivals"],
            "lengths": {
                "kind": "uniform",
                "input_tokens": {"low": 1, "high": 2000},
                "output_tokens": {"low": 1, "high": 200},
            },
            "shared_prefix": {"tokens": 400, "groups": 2},
        },
        "stride": stride,
        "seed": 247,
    }
    return simulate(experiment_of(parse_yaml(json.dumps(written), "waiting.yaml")))


@pytest.mark.parametrize("case", [DRAFTS, STATES], ids=["drafts", "states"])
def test_strides_wait_as_often_as_single_iterations(case):
    on, off = served("on", case), served("off", case)
    np.testing.assert_allclose(on.requests.last_token_s, off.requests.last_token_s, rtol=1e-12)
