"""What each kind of engine puts into its pool of KV blocks, and what it sets aside beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sim.memory.deployment import Deployment
from sim.memory.kv_groups import KvGroup, LayerCache, kv_groups, layer_caches, stage_block_bytes
from sim.memory.stages import stages
from sim.profiles.engine_memory import ProfiledMemory, SlotMemory, StaticFractionMemory

__all__ = ["Pool", "pool"]


@dataclass(frozen=True, slots=True)
class Pool:
    """Groups of layers that draw on one pool of blocks.

    Attributes
    ----------
    groups
        Layers by block table.
    block_bytes
        What one block of the pool costs on a rank of each stage [B].
    state_bytes
        What all sequences together keep outside the pool, on a rank of each stage [B].
    """

    groups: tuple[KvGroup, ...]
    block_bytes: tuple[float, ...]
    state_bytes: tuple[float, ...]


def pool(deployment: Deployment) -> Pool:
    """Return the pool that the deployment's engine would make; a block has room for the layers that draft, too.

    vLLM pages everything. The others set the states of linear layers aside for every sequence; llama.cpp also the
    windows, while SGLang gives windowed layers a pool of fewer tokens.
    """
    attentions = [layer.attention for layer in deployment.model.stack]
    tp, kv_dtype = deployment.parallelism.tp, deployment.kv_dtype
    kept = [[_divided(cache, deployment) for cache in layer_caches(part, tp, kv_dtype)] for part in attentions]
    pooled = [tuple(cache for cache, _ in layer if cache) for layer in kept]
    aside = [deployment.limits.max_num_seqs * sum(apart for _, apart in layer) for layer in kept]
    groups = _groups(deployment, pooled)
    cuts = stages(deployment.model, deployment.parallelism.pp)
    block_bytes = [stage_block_bytes(groups, cut) for cut in cuts]
    if deployment.draft is not None and groups:
        block_bytes[-1] += deployment.draft.token_bytes(kv_dtype, tp) * max(group.block_size for group in groups)
    return Pool(
        groups,
        block_bytes=tuple(block_bytes),
        state_bytes=tuple(sum(aside[index] for index in cut) for cut in cuts),
    )


def _groups(deployment: Deployment, pooled: list[tuple[LayerCache, ...]]) -> tuple[KvGroup, ...]:
    block_size, engine = deployment.limits.block_size, deployment.memory
    if not isinstance(engine, ProfiledMemory):
        return kv_groups(pooled, block_size, hybrid=False)
    ratio = engine.group_padding_ratio
    return kv_groups(pooled, block_size, hybrid=engine.hybrid_groups, padding_ratio=ratio)


def _divided(cache: LayerCache, deployment: Deployment) -> tuple[LayerCache | None, float]:
    """Return what of *cache* goes into the pool, and what one sequence keeps outside it [B]."""
    engine = deployment.memory
    if isinstance(engine, ProfiledMemory):
        return cache, 0.0
    if cache.state_bytes:
        return None, cache.state_bytes
    if cache.window is not None and isinstance(engine, SlotMemory):
        rows = -(-(cache.window + engine.micro_batch_tokens) // engine.pad_tokens) * engine.pad_tokens
        return None, cache.token_bytes * min(rows, deployment.limits.max_model_len)
    if cache.window is not None and isinstance(engine, StaticFractionMemory):
        return replace(cache, token_bytes=cache.token_bytes * engine.window_tokens_ratio), 0.0
    return cache, 0.0
