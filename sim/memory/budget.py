"""How each kind of engine divides the memory of one rank."""

from __future__ import annotations

from dataclasses import dataclass

from sim.memory.activation import activation_bytes
from sim.memory.deployment import Deployment
from sim.memory.weights import stage_weight_bytes
from sim.profiles.engine_memory import (
    Activations,
    CudaGraphs,
    FreeFractionMemory,
    ProfiledMemory,
    SlotMemory,
    StaticFractionMemory,
)
from sim.profiles.model import MoeMlp
from sim.units import GIB

__all__ = ["RankMemory", "rank_memory"]


@dataclass(frozen=True, slots=True)
class RankMemory:
    """The memory of one rank [B]; the parts beside the KV cache may leave it less than nothing.

    Attributes
    ----------
    visible_bytes
        Memory that the framework sees.
    usable_bytes
        What the engine allows itself.
    weights_bytes, activation_bytes, non_torch_bytes, cuda_graph_bytes
        Parts that the engine needs; CUDA graphs may lie outside what it allows itself.
    state_bytes
        Reserved for constant states of sequences, outside the pool of blocks.
    kv_bytes
        What is left for the pool of KV blocks.
    """

    visible_bytes: float
    usable_bytes: float
    weights_bytes: float
    activation_bytes: float
    non_torch_bytes: float
    cuda_graph_bytes: float
    state_bytes: float
    kv_bytes: float


def rank_memory(deployment: Deployment, layers: range, state_bytes: float) -> RankMemory:
    """Return the memory of a rank of the stage that computes *layers*, as the deployment's engine divides it.

    Parameters
    ----------
    state_bytes
        What the engine sets aside for the states of all sequences before it makes its pool [B].
    """
    match deployment.memory:
        case ProfiledMemory() as engine:
            return _profiled(deployment, engine, layers, state_bytes)
        case StaticFractionMemory() as engine:
            return _static_fraction(deployment, engine, layers, state_bytes)
        case FreeFractionMemory() as engine:
            return _free_fraction(deployment, engine, layers, state_bytes)
        case SlotMemory() as engine:
            return _slots(deployment, engine, layers, state_bytes)


def _profiled(deployment: Deployment, engine: ProfiledMemory, layers: range, state_bytes: float) -> RankMemory:
    """VLLM `gpu_worker.py: determine_available_memory`: what is asked for, less weights, peak and non-torch."""
    visible = deployment.hardware.visible_memory_bytes
    usable = visible * (deployment.limits.gpu_memory_utilization or 1.0)
    weights = _weights(deployment, layers, engine.activations)
    peak = activation_bytes(deployment, layers, engine.activations)
    outside = _non_torch(deployment, engine)
    graphs = _graphs(deployment, engine.cuda_graphs, layers)
    left = usable - weights - peak - outside - (graphs if engine.cuda_graphs.subtracted else 0.0) - state_bytes
    return RankMemory(visible, usable, weights, peak, outside, graphs, state_bytes, left)


def _non_torch(deployment: Deployment, engine: ProfiledMemory) -> float:
    if deployment.parallelism.tp * deployment.parallelism.dp > 1:
        return engine.non_torch_tp_bytes
    return engine.non_torch_pp_bytes if deployment.parallelism.pp > 1 else engine.non_torch_bytes


def _static_fraction(
    deployment: Deployment, engine: StaticFractionMemory, layers: range, state_bytes: float
) -> RankMemory:
    """SGLang `model_runner.py: profile_max_num_token`: fraction x free memory before loading, less weights."""
    visible = deployment.hardware.visible_memory_bytes
    context = engine.context_bytes + (engine.collectives_bytes if deployment.parallelism.gpus > 1 else 0.0)
    fraction = deployment.limits.gpu_memory_utilization or _default_fraction(deployment, engine)
    usable = (visible - context) * fraction
    weights = _weights(deployment, layers, engine.activations)
    reserve = visible - context - usable
    return RankMemory(visible, usable, weights, reserve, context, 0.0, state_bytes, usable - weights - state_bytes)


def _default_fraction(deployment: Deployment, engine: StaticFractionMemory) -> float:
    """SGLang 0.5 `server_args.py: _handle_gpu_memory_settings`: all but a reserve for activations and graphs."""
    total = deployment.hardware.visible_memory_bytes
    captured = _captured(deployment)
    rows = min(deployment.limits.max_num_seqs, 512 if captured is None else max(captured, default=0))
    reserve = (
        engine.reserved_bytes
        + engine.reserved_per_chunk_token_bytes * max(deployment.limits.max_num_batched_tokens, 2048)
        + engine.reserved_per_graph_row_bytes * rows
        + engine.reserved_per_rank_bytes * deployment.parallelism.tp * deployment.parallelism.pp
    )
    floor = engine.reserved_floor_bytes if total > 60 * GIB else 0.0
    return round((total - max(reserve, floor)) / total, 3)


def _free_fraction(deployment: Deployment, engine: FreeFractionMemory, layers: range, state_bytes: float) -> RankMemory:
    """TensorRT-LLM `free_gpu_memory_fraction`: a share of what weights and activations leave free."""
    visible = deployment.hardware.visible_memory_bytes
    context = engine.context_bytes + (engine.collectives_bytes if deployment.parallelism.gpus > 1 else 0.0)
    weights = _weights(deployment, layers, engine.activations)
    peak = activation_bytes(deployment, layers, engine.activations)
    free = visible - context - weights - peak - state_bytes
    left = free * (deployment.limits.gpu_memory_utilization or 1.0)
    return RankMemory(visible, visible - (free - left), weights, peak, context, 0.0, state_bytes, left)


def _slots(deployment: Deployment, engine: SlotMemory, layers: range, state_bytes: float) -> RankMemory:
    """llama.cpp: beside the rest a margin, and 32-bit logits and hidden states of one micro-batch.

    The compute buffer of Llama-3-8B at 512 tokens is 258.5 MiB = 512 x (128,256 + 4,096) x 4 B in its log.
    """
    visible = deployment.hardware.visible_memory_bytes
    weights = _weights(deployment, layers, Activations())
    peak = engine.micro_batch_tokens * (deployment.model.vocab_size + deployment.model.hidden_size) * 4.0
    usable = visible - engine.margin_bytes
    left = usable - weights - peak - engine.context_bytes - state_bytes
    return RankMemory(visible, usable, weights, peak, engine.context_bytes, 0.0, state_bytes, left)


def _weights(deployment: Deployment, layers: range, engine: Activations) -> float:
    """Return the weights of one rank [B]; what drafts is cut over the ranks of the last stage."""
    own = stage_weight_bytes(deployment.model, deployment.quantization, deployment.parallelism, layers, engine)
    if deployment.draft is None or layers.stop != deployment.model.num_layers:
        return own
    return own + deployment.draft.weight_bytes / deployment.draft.ranks(deployment.parallelism.tp)


def _captured(deployment: Deployment) -> tuple[int, ...] | None:
    """Return the batches that are captured as CUDA graphs; None: not known."""
    limits = deployment.limits
    if limits.captured is not None or limits.graphs is None:
        return limits.captured
    largest = limits.graphs.largest_on(deployment.hardware, deployment.parallelism.tp, limits.max_num_seqs)
    return limits.graphs.sizes_up_to(largest)


def _graphs(deployment: Deployment, graphs: CudaGraphs, layers: range) -> float:
    sizes = _captured(deployment)
    if not sizes:
        return 0.0
    experts = any(isinstance(deployment.model.stack[index].mlp, MoeMlp) for index in layers)
    captured = graphs.per_layer_and_size_bytes * len(layers) * len(sizes)
    return graphs.fixed_bytes + captured + (graphs.moe_bytes if experts else 0.0)
