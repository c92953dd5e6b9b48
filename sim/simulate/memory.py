"""The memory of a replica and the KV pool that is left of it."""

from __future__ import annotations

from dataclasses import dataclass

from sim.experiment import Experiment
from sim.kv import Pages
from sim.memory import Limits, MemoryPlan, nearest_fits, plan_memory
from sim.profiles.draft import Draft
from sim.profiles.engine import EngineVersion
from sim.profiles.folders import names
from sim.profiles.hardware import Hardware
from sim.profiles.library import load_hardware
from sim.profiles.model import Model
from sim.simulate.block_tables import pages_of
from sim.simulate.flags import Flags
from sim.simulate.graphs import captured_sizes, own_graphs

__all__ = ["KvPool", "kv_pool", "memory_plan"]


def memory_plan(
    experiment: Experiment,
    model: Model,
    hardware: Hardware,
    version: EngineVersion,
    flags: Flags,
    draft: Draft | None = None,
) -> MemoryPlan:
    """Return the memory of a replica, which may not fit; raise `ConfigError` for a window the model does not have."""
    if flags.max_model_len > model.max_position_embeddings:
        window = f"{flags.max_model_len} is beyond the {model.max_position_embeddings} tokens of {model.name}"
        raise experiment.error("engine.max_model_len", window)
    options = flags.scheduler.model_dump()
    max_num_seqs, tokens = version.limits_on(hardware)
    limits = Limits(
        max_model_len=flags.max_model_len,
        max_num_seqs=options.get("max_num_seqs") or options.get("batch_size") or max_num_seqs,
        max_num_batched_tokens=options.get("max_num_batched_tokens") or tokens,
        gpu_memory_utilization=flags.gpu_memory_utilization,
        block_size=flags.block_size,
        captured=captured_sizes(experiment, hardware, version, flags) if own_graphs(experiment) else None,
        graphs=version.graphs,
    )
    deployment = experiment.deployment
    if experiment.moe is not None:
        model = experiment.moe.stored(model, deployment.quantization)
    quantization, parallelism = deployment.quantization, deployment.parallelism
    return plan_memory(model, hardware, quantization, parallelism, version.memory, limits, draft)


@dataclass(frozen=True, slots=True)
class KvPool:
    """Blocks of *block_size* tokens each; *pages* where layers hold them differently.

    Without paged attention a block is the room of a whole request.
    """

    num_blocks: int
    block_size: int
    pages: Pages | None
    prefix_caching: bool


def kv_pool(experiment: Experiment, memory: MemoryPlan | None, flags: Flags) -> KvPool:
    """Return the KV pool of a replica with that *memory*; None: ``num_gpu_blocks_override`` says how large it is.

    Raises
    ------
    ConfigError
        For options of a prefix cache where there is none.
    InfeasibleError
        If the model does not fit.
    """
    paged = experiment.engine.kv_layout == "paged"
    pages = pages_of(memory, flags.scheduler.longest_chunk) if memory is not None and paged else None
    pool = _pool(experiment.engine.num_gpu_blocks_override or 0, memory, pages, flags)
    if not paged:
        pool = KvPool(pool.num_blocks * pool.block_size // flags.max_model_len, flags.max_model_len, None, False)
    if experiment.engine.kv_offload is not None and not pool.prefix_caching:
        raise experiment.error("engine.kv_offload", "there is no prefix cache whose blocks it could keep")
    if experiment.engine.eviction != "lru" and not pool.prefix_caching:
        raise experiment.error("engine.eviction", "there is no prefix cache whose blocks could be evicted")
    return pool


def _pool(given_blocks: int, memory: MemoryPlan | None, pages: Pages | None, flags: Flags) -> KvPool:
    if memory is None:
        return KvPool(given_blocks, flags.block_size, None, flags.prefix_caching)
    if pages is None:
        return KvPool(_blocks(memory), memory.block_size, None, flags.prefix_caching)
    return KvPool(_fitting(memory).num_blocks, pages.block_size, pages, flags.prefix_caching and pages.full > 0)


def _blocks(memory: MemoryPlan) -> int:
    """Return the blocks of the pool, each of which holds its tokens in all layers; raise if the plan does not fit."""
    longest = memory.deployment.limits.max_model_len
    return round(_fitting(memory).max_concurrency * -(-longest // memory.block_size))


def _fitting(memory: MemoryPlan) -> MemoryPlan:
    if not memory.fits:
        memory.require(nearest_fits(memory, map(load_hardware, names("hardware"))))
    return memory
