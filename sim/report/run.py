"""What ``sim run`` shows and writes of a result."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sim.experiment import defaults_used
from sim.report.files import manifest_of, write_run
from sim.report.json import to_json
from sim.report.table import print_table
from sim.report.vllm import vllm_block
from sim.simulate import Result
from sim.simulate.inputs import input_files
from sim.units import format_bytes

__all__ = ["defaults_line", "show", "write"]


def show(result: Result, form: str) -> None:
    """Print *result* on standard output as ``table``, ``vllm`` or ``json``."""
    if form == "table":
        print_table(result.summary, list(_about(result)))
        return
    values = result.summary.as_dict()
    if form == "json":
        print(to_json(values))
        return
    arrivals = result.experiment.workload.arrivals
    rate = getattr(arrivals, "rate", None)
    concurrency = getattr(arrivals, "concurrency", getattr(arrivals, "max_concurrency", None))
    print(vllm_block(values, request_rate=rate or float("inf"), max_concurrency=concurrency))


def write(result: Result, folder: Path) -> list[Path]:
    """Write all files of *result* into *folder*, which exists, and return their paths."""
    experiment = result.experiment
    manifest = manifest_of(experiment.seed, input_files(experiment))
    return write_run(
        folder,
        result.summary,
        result.requests,
        result.strides,
        kv_blocks=result.setup.engine.num_blocks,
        manifest=manifest | {"experiment": experiment.model_dump(mode="json")},
    )


def defaults_line(result: Result) -> str:
    """Name every field that the experiment left open, with the value that was used."""
    used = dict(defaults_used(result.experiment)) | dict(result.setup.flags.left_open(result.experiment.engine))
    return "defaults used: " + ", ".join(f"{path}={used[path]}" for path in sorted(used))


def _about(result: Result) -> Iterator[str]:
    """Say in a few lines what was simulated."""
    experiment, setup, engine = result.experiment, result.setup, result.setup.engine
    deployment, parallelism = experiment.deployment, experiment.deployment.parallelism
    gpus = f"{deployment.replicas * parallelism.gpus} x {setup.hardware.name}"
    yield f"{experiment.name}: {setup.model.name} on {gpus} ({deployment.replicas} x TP{parallelism.tp})"
    flags = ", ".join(f"{name} {value}" for name, value in engine.scheduler.model_dump().items() if name != "kind")
    yield f"{experiment.engine.kind} {experiment.engine.version}, {engine.scheduler.kind} ({flags})"
    pool = f"{engine.num_blocks:,} KV blocks of {engine.block_size} tokens a replica"
    if setup.memory is not None:
        weights, kv = format_bytes(setup.memory.weights_bytes), format_bytes(setup.memory.kv_bytes)
        pool += f"; a GPU holds {weights} of weights and {kv} of KV cache"
    yield pool
    yield f"{len(result.traffic.requests):,} requests, {experiment.workload.arrivals.kind} arrivals"
