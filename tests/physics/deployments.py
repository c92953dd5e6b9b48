"""Random deployments under random traffic, as the YAML of an experiment, and better hardware for them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from sim.errors import SimError
from sim.experiment import experiment_of
from sim.profiles.library import find
from sim.simulate import Result, simulate
from sim.yamlfile import parse_yaml, read_yaml, to_yaml

__all__ = ["GPUS", "MODELS", "Data", "better", "deployments", "played"]

Data = dict[str, Any]

MODELS = (
    *(
        "Qwen/Qwen3-0.6B",
        "Qwen/Qwen3-8B",
        "Qwen/Qwen3-32B",
        "meta-llama/Llama-3.3-70B-Instruct",
        "google/gemma-3-12b-it",
    ),
    *(
        "Qwen/Qwen3-30B-A3B",
        "mistralai/Mixtral-8x7B-Instruct-v0.1",
        "openai/gpt-oss-20b",
        "deepseek-ai/DeepSeek-V2-Lite",
    ),
)
GPUS = (
    *("H100-SXM-80GB", "H200-SXM-141GB", "A100-SXM-80GB", "H100-PCIe-80GB", "L40S", "L4", "B200-SXM-180GB"),
    *("MI300X", "RTX-4090", "H20-96GB"),
)
_SCHEDULERS: dict[str, list[Data | None]] = {
    "vllm": [
        None,
        {"kind": "chunked_prefill", "max_num_batched_tokens": 2048, "max_num_seqs": 64},
        {"kind": "chunked_prefill", "max_num_batched_tokens": 512, "max_num_seqs": 8, "order": "shortest_job_first"},
        {"kind": "continuous", "max_num_seqs": 16},
        {"kind": "continuous", "max_num_seqs": 64},
        {"kind": "static", "batch_size": 8},
        {"kind": "inflight", "max_num_seqs": 32},
    ],
    "sglang": [None, {"kind": "sglang", "max_num_seqs": 24}],
    "tensorrt-llm": [None, {"kind": "inflight", "capacity_policy": "max_utilization"}],
    "tgi": [None],
    "llama-cpp": [None],
}


def _lengths() -> st.SearchStrategy[Data]:
    fixed = st.fixed_dictionaries(
        {
            "kind": st.just("fixed"),
            "input_tokens": st.sampled_from((16, 300, 2000)),
            "output_tokens": st.integers(2, 120),
        }
    )
    low, high = st.integers(1, 200), st.integers(200, 2500)
    uniform = st.builds(
        lambda a, b, c, d: {
            "kind": "uniform",
            "input_tokens": {"low": a, "high": b},
            "output_tokens": {"low": c, "high": d},
        },
        *(low, high, st.integers(1, 40), st.integers(40, 150)),
    )
    return st.one_of(fixed, uniform)


@st.composite
def deployments(draw: Callable[..., Any], *, apart: bool = True) -> Data:
    """Draw a deployment and a closed loop of users; with *apart*, some with pools that prefill or decode."""
    engine = draw(st.sampled_from(tuple(_SCHEDULERS)))
    parallelism = {"tp": draw(st.sampled_from((1, 1, 2, 4, 8))), "pp": draw(st.sampled_from((1, 1, 1, 2)))}
    data: Data = {
        "model": draw(st.sampled_from(MODELS)),
        "deployment": {
            "gpu": draw(st.sampled_from(GPUS)),
            "replicas": draw(st.sampled_from((1, 1, 2))),
            "parallelism": parallelism,
            "quantization": draw(st.sampled_from(({}, {}, {"weights": "fp8"}, {"kv_cache": "fp8"}))),
        },
        "engine": {"kind": engine, "max_model_len": 4096, "scheduler": draw(st.sampled_from(_SCHEDULERS[engine]))},
        "workload": {
            "arrivals": {"kind": "closed_loop", "concurrency": draw(st.sampled_from((1, 3, 8, 40)))},
            "lengths": draw(_lengths()),
            "num_requests": draw(st.sampled_from((40, 80))),
        },
        "seed": draw(st.integers(1, 10**6)),
    }
    data["engine"] = {name: value for name, value in data["engine"].items() if value is not None}
    if draw(st.booleans()):
        data["engine"]["prefix_caching"] = draw(st.booleans())
        data["workload"]["shared_prefix"] = {"tokens": draw(st.sampled_from((16, 512)))}
    if draw(st.integers(0, 5)) == 0:
        data["engine"]["speculative"] = {"kind": "ngram", "num_speculative_tokens": 3, "acceptance": [0.7, 0.5, 0.3]}
    if apart and draw(st.integers(0, 5)) == 0:
        replicas = {"replicas": draw(st.integers(1, 2))}
        data["pools"] = [{"name": "p", "role": "prefill", **replicas}, {"name": "d", "role": "decode"}]
    return data


def better(data: Data, what: str, times: float, folder: Path) -> None:
    """Write a profile of the accelerator of *data*, with *times* as much of *what*, to where it is found first."""
    gpu = data["deployment"]["gpu"]
    profile = copy.deepcopy(read_yaml(find("hardware", gpu)).data)
    from sim.profiles.library import load_hardware

    known = load_hardware(gpu)
    match what:
        case "bandwidth":
            profile["memory_bytes_per_s"] = known.memory_bytes_per_s * times
        case "flops":
            profile["peak_flops"] = {dtype: rate * times for dtype, rate in known.peak_flops.items()}
        case "memory":
            profile |= {
                "memory_bytes": known.memory_bytes * times,
                "visible_memory_bytes": known.visible_memory_bytes * times,
            }
        case "links":
            rates = ("pcie_bytes_per_s", "nic_bytes_per_s")
            profile |= {name: rate * times for name in rates if (rate := getattr(known, name)) is not None}
            if known.interconnect is not None:
                profile["interconnect"]["bytes_per_s"] = known.interconnect.bytes_per_s * times
    path = folder / "profiles" / "hardware" / f"{gpu}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(to_yaml(profile), encoding="utf-8")


def played(data: Data, folder: Path) -> Result | None:
    """Simulate *data* with what lies in *folder*; None for a deployment that is refused."""
    try:
        return simulate(experiment_of(parse_yaml(to_yaml(data), str(folder / "x.yaml"))))
    except SimError:
        return None
