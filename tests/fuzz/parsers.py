"""Every kind of input: what its files are called, real ones to begin with, what reads it, and how often."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from fuzz import readers, seeds
from fuzz.invention import Inventor
from fuzz.mutation import mutate
from fuzz.seeds import ROOT, SHARED, small

__all__ = ["PARSERS", "Parser"]

_PROFILES = ROOT / "profiles"


@dataclass(frozen=True)
class Parser:
    """One kind of input.

    Attributes
    ----------
    file
        Path of its file in a folder of its own, since suffixes tell readers apart.
    seeds
        Returns real files.
    read
        Reads the file; may raise nothing but a `SimError`.
    weight
        Its share of all inputs, over the sum of all weights: the quick ones get most.
    inventor
        Draws documents by a schema, where there is one.
    beside
        Further files of the folder.
    only_own_files
        It must not read a file that is neither in its folder nor shipped.
    """

    file: str
    seeds: Callable[[], list[bytes]]
    read: Callable[[Path], None]
    weight: float
    inventor: Callable[[], Inventor] | None = None
    beside: Callable[[], Mapping[str, bytes]] = field(default=dict)
    only_own_files: bool = False

    def inputs(self, real: list[bytes]) -> Callable[[Random], bytes]:
        """Return what draws an input from *real* ones."""
        inventor = self.inventor() if self.inventor is not None else None

        def draw(random: Random) -> bytes:
            if inventor is not None and random.random() < 0.4:
                content = inventor.document(random)
                return content if random.random() < 0.7 else mutate(random, content, real)
            return mutate(random, random.choice(real), real)

        return draw


def _files(folder: Path, pattern: str, longest: int = 6000) -> list[bytes]:
    return small(folder.glob(pattern), longest)


def _experiments() -> list[bytes]:
    return _files(ROOT / "experiments", "**/*.yaml")


@functools.cache
def _experiment_inventor() -> Inventor:
    from sim.experiment import Experiment
    from sim.profiles.folders import names

    known = (*names("engines"), *names("workloads"), *names("hardware")[::6], *names("models")[::20])
    return Inventor(Experiment.model_json_schema(by_alias=True), known)


def _settings() -> list[bytes]:
    lines = (
        *(
            "deployment.replicas=2",
            "workload.arrivals={kind: poisson, rate: 3}",
            "deployment.parallelism={tp: 2, pp: 1}",
        ),
        *("engine.scheduler={kind: sglang}", "workload.lengths={kind: fixed, input_tokens: 9, output_tokens: 3}"),
        *("slo.ttft_p95=1 s", "seed=7", "pools=[{gpu: L4}, {gpu: L40S}]", "pools.0.gpu=L4", "moe.placement.kind=eplb"),
        *("model=Qwen/Qwen3-8B", "engine.speculative={kind: ngram, acceptance: [0.5]}", "slo=", "prices={}"),
        *(
            "engine.kv_offload={tiers: [{capacity: 1 GB}]}",
            "failures.gpu={mtbf_s: 1e6, repair_s: 60}",
            "search.kind=cheapest",
        ),
    )
    return [line.encode() for line in lines] + ["\n".join(lines[at : at + 3]).encode() for at in range(0, 15, 3)]


def _axes() -> list[bytes]:
    return [
        b"deployment.parallelism.tp=[1, 2, 4]\nengine.block_size=[16, 32]",
        b"workload.num_requests=[10, 20]\nslo.ttft_p95=[1 s, 2 s]",
        b"kind=sobol\nnum_points=8\nworkload.lengths={low: 1, high: 4}",
        b"kind=latin_hypercube\nnum_points=4\nengine.gpu_memory_utilization={low: 0.5, high: 0.9}",
        b"kind=list\npoints=[{seed: 2}, {deployment.replicas: 2}]",
        b"replications=3\npools.0.gpu=[L4]\nmodel=[a, b]",
    ]


def _traces() -> list[bytes]:
    paths = [path for path in (SHARED / "traces").glob("*") if path.suffix in (".csv", ".jsonl", ".gz")]
    paths += (ROOT / "tests").glob("golden/experiments/*trace*.json")
    own = (ROOT / "experiments" / "traces").glob("*")
    chats = {"conversations": [{"from": "human", "value": "hello there"}, {"from": "gpt", "value": "yes, hello"}]}
    return [*small([*paths, *own], 1500), _json([chats]), _json({"prompt": "a b c", "output_tokens": 7})]


def _benchmarks() -> list[bytes]:
    shipped = _files(ROOT / "calibration" / "measurements", "*.csv", 1500)
    serve = {
        "num_prompts": 8,
        "completed": 8,
        "request_throughput": 1.0,
        "output_throughput": 16.0,
        "mean_ttft_ms": 20.0,
    }
    found = [path for path in (SHARED / "bench_outputs").glob("*") if path.name != "MANIFEST.csv"]
    return [*shipped, _json(serve), *small([*found, *(SHARED / "steps").glob("*"), *_request_logs()], 3000)]


def _request_logs() -> Iterable[Path]:
    return sorted((SHARED / "requests").glob("*"))[::6]


def _start_ups() -> list[bytes]:
    header = b"case,model,config_file,gpu,gpu_mem_gib,dtype_quant,vllm_version,status,tp,max_model_len,kv_dtype"
    row = b"1,a,config.json,L4,22.03,bfloat16,0.11.0,ok,1,512,auto"
    return [header + b"\n" + row + b"\n" + row + b"\n", *_files(SHARED / "memory", "kv_cases.csv", 4000)]


def _kernels() -> list[bytes]:
    from calibration.kernels.measured import KernelRow, as_csv

    row = KernelRow("NVIDIA H100 80GB HBM3", "gemm", "bf16", 8, 4096, 4096, seconds=1e-5, source="x")
    attention = row._replace(operation="decode", batch=4, context=900, heads=32, kv_heads=8, head_dim=128)
    return [as_csv([row, attention]).encode(), as_csv([row._replace(m=2**at) for at in range(9)]).encode()]


def _configs() -> list[bytes]:
    own = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4}
    own |= {"num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 1000, "max_position_embeddings": 512}
    return [_json(own), *_files(SHARED / "memory" / "configs", "*.json", 4000)]


def _answers() -> list[bytes]:
    from sim.report.workload import questions
    from sim.workload.questionnaire import Answers

    short = b"users: 500\nprompt_words: 80\nanswer_words: 200\nlanguage: german\n"
    return [short, questions(Answers).encode()]


def _load_tables() -> list[bytes]:
    plain = [{"loads": [[1, 2, 3, 4]]}, [[0.5, 0.5], [1, 0]], {"weight": [[90, 132, 40, 61]]}]
    recorded = {"records": [{"global_physical_count": [[1, 2, 3]]}], "last_physical_to_logical_map": [[0, 1, 0]]}
    return [*map(_json, (*plain, recorded)), *_files(SHARED / "moe", "*.json", 3000)]


def _maps() -> list[bytes]:
    device = {"device_id": 0, "device_expert": [0, 1]}
    layer = {"layer_id": 0, "device_count": 1, "device_list": [device]}
    return [_json({"physical_to_logical": [[0, 1, 1]]}), _json({"moe_layer_count": 1, "layer_list": [layer]})]


def _json(value: Any) -> bytes:
    import json

    return json.dumps(value).encode()


@functools.cache
def _run() -> Mapping[str, bytes]:
    with TemporaryDirectory() as folder:
        return seeds.run_folder(Path(folder))


def _sweep_rows() -> list[bytes]:
    from sim.study.table import parquet_of

    return [parquet_of([{"point": 0, "a": 1.5, "status": "ok", "key": "k"}])]


def _profile(kind: str, weight: float) -> Parser:
    return Parser(
        "x.yaml", lambda: seeds.anonymous(_files(_PROFILES / kind, "**/*.yaml", 12_000)), readers.profile(kind), weight
    )


def _used(kind: str, name: str, field: str, weight: float) -> Parser:
    """The profile of that *name*, damaged, in the *field* of an experiment; it must keep its name to get that far."""
    return Parser(f"{name}.yaml", lambda: _files(_PROFILES / kind, f"{name}.yaml", 12_000), readers.used(field), weight)


def _run_file(name: str, weight: float) -> Parser:
    return Parser(name, lambda: [_run()[name]], readers.run_file, weight, beside=_run)


PARSERS: dict[str, Parser] = {
    "experiment": Parser("x.yaml", _experiments, readers.experiment, 8, _experiment_inventor),
    "deployment": Parser("x.yaml", _experiments, readers.deployment, 3, _experiment_inventor),
    "workload": Parser("x.yaml", _experiments, readers.workload, 3, _experiment_inventor),
    "set": Parser("x", _settings, readers.settings, 40),
    "sweep_paths": Parser("x", _axes, readers.sweep_paths, 20),
    "url": Parser("x", _settings, readers.url, 5, only_own_files=True),
    "page_yaml": Parser("x", _experiments, readers.page_yaml, 3, _experiment_inventor, only_own_files=True),
    "config": Parser("x.json", _configs, readers.config, 200),
    "checkpoint": Parser(
        "x.safetensors", seeds.safetensors, readers.checkpoint, 8, beside=lambda: {"config.json": _configs()[0]}
    ),
    "trace": Parser("x", _traces, readers.trace, 200),
    "trace_companion": Parser(
        "1_x.jsonl",
        lambda: [b'{"passage_id": 7, "token_length": 297}\n{"passage_id": 8, "token_length": 1}\n'],
        readers.trace_companion,
        60,
        beside=lambda: {"trace.jsonl": _RAGPULSE},
    ),
    "benchmark": Parser("x", _benchmarks, readers.benchmark, 20),
    "cases": Parser("x", _benchmarks, readers.cases, 20),
    "memory_cases": Parser(
        "x.csv", _start_ups, readers.memory_cases, 10, beside=lambda: {"config.json": _configs()[0]}
    ),
    "kernels": Parser("x.csv", _kernels, readers.kernels, 60),
    "hardware": _profile("hardware", 3),
    "models": _profile("models", 3),
    "engines": _profile("engines", 1),
    "workloads": _profile("workloads", 3),
    "prices": _profile("prices", 3),
    "apis": _profile("apis", 3),
    "languages": _profile("languages", 3),
    "calibrated_hardware": _profile("calibrated/hardware", 1.5),
    "calibrated_engines": _profile("calibrated/engines", 1),
    "calibrated_errors": _profile("calibrated/errors", 0.6),
    "calibrated_all_to_all": _profile("calibrated/all_to_all", 1),
    "calibrated_links": _profile("calibrated/links", 1),
    "calibrated_power": _profile("calibrated/power", 1.5),
    "hardware_used": _used("hardware", "H100-SXM-80GB", "deployment.gpu", 2),
    "model_used": _used("models", "Qwen/Qwen3-30B-A3B", "model", 2),
    "engine_used": _used("engines", "vllm", "engine.kind", 0.7),
    "constants_used": _used("calibrated/engines", "vllm", "engine.calibration", 0.7),
    "config_used": Parser("x.json", _configs, readers.used("model"), 3),
    "answers": Parser("x.yaml", _answers, readers.answers, 4),
    "loads_json": Parser("x.json", _load_tables, readers.loads, 70),
    "loads_csv": Parser("x.csv", lambda: [b"1,2,3,4\n5,6,7,8\n", *_files(SHARED / "moe", "*.csv")], readers.loads, 70),
    "loads_npy": Parser("x.npy", seeds.npy, readers.loads, 50),
    "loads_npz": Parser("x.npz", seeds.arrays, readers.loads, 40),
    "loads_jsonl": Parser("x.jsonl", lambda: [_ROUTES, *_files(SHARED / "moe", "*.jsonl", 2000)], readers.loads, 60),
    "loads_tensorrt": Parser("rank0.safetensors", seeds.safetensors, readers.loads, 60),
    "map_json": Parser("x.json", _maps, readers.slots, 60),
    "map_yaml": Parser(
        "x.yaml", lambda: [b"initial_global_assignments: {0: [0, 1, 1], 1: [1, 0, 0]}\n"], readers.slots, 6
    ),
    "run_result": _run_file("result.json", 2),
    "run_manifest": _run_file("manifest.json", 0.7),
    "run_requests": _run_file("requests.parquet", 2),
    "run_strides": _run_file("strides.parquet", 2),
    "sweep_rows": Parser("sweep.parquet", _sweep_rows, readers.sweep_folder, 10),
    "cache_entry": Parser(
        "points/00/00.json", lambda: [_json({"status": "ok", "error": None})], readers.cache_entry, 60
    ),
}
"""By name."""

_RAGPULSE = (
    b'{"timestamp": "1", "input_length": 300, "output_length": 9, "session_id": "a",'
    b' "hash_ids": {"sys_prompt": [7], "user_input": [8]}}\n'
)
_ROUTES = b'{"layer": 0, "topk_ids": [1, 2]}\n{"layer": 1, "topk_experts": [[0, 1], [2, 3]]}\n'
