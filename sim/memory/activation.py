"""The peak of memory that an iteration needs beside weights and KV cache.

An engine profiles it at start-up with the largest batch that it allows: `max_num_batched_tokens` tokens go
through the layers, then `max_num_seqs` sequences through the sampler. The larger of the two stays free for ever.
"""

from __future__ import annotations

from sim.memory.deployment import Deployment
from sim.memory.stages import padded_vocab, rank_layer
from sim.profiles.engine_memory import Activations
from sim.profiles.model import AnyAttention, AnyMlp, DenseMlp, LatentAttention, Layers, MoeMlp
from sim.profiles.quantization import bytes_per_element

__all__ = ["activation_bytes"]


def activation_bytes(deployment: Deployment, layers: range, engine: Activations) -> float:
    """Return the peak on one rank of the stage that computes *layers* [B].

    A stage also keeps hidden state and residual that come from the stage before it, and those that it sends.

    Parameters
    ----------
    engine
        The engine's constants: how many tensors are alive at which moment.
    """
    model = deployment.model
    first, last = layers.start == 0, layers.stop == model.num_layers
    hidden_bytes = _batch_bytes(deployment, model.hidden_size)
    kinds = {id(layer): layer for layer in (model.stack[index] for index in layers)}
    own = [rank_layer(layer, deployment.parallelism) for layer in kinds.values()]
    peak = engine.forward_hidden_copies * hidden_bytes + _widest_layer_bytes(deployment, own, engine)
    if last:
        peak = max(peak, _sampling_bytes(deployment, own, engine))
    between_stages = 2 * ((not first) + (not last)) * hidden_bytes
    vision = (engine.vision_bytes or 0.0) if first and model.vision_params else 0.0
    return peak + between_stages + vision + engine.fixed_bytes + _index_bytes(deployment, engine)


def _batch_bytes(deployment: Deployment, width: float) -> float:
    """Return a tensor of *width* elements for each token of a full batch [B]."""
    return deployment.limits.max_num_batched_tokens * width * bytes_per_element(deployment.dtype)


def _sampling_bytes(deployment: Deployment, own: list[Layers], engine: Activations) -> float:
    """Return what is alive while sampling [B].

    For each sequence and entry of the whole vocabulary, on every rank: logits, their 32-bit copy, probabilities
    and random numbers. Beside them the hidden states of the batch, and buffers of experts that are kept.
    """
    limits, model = deployment.limits, deployment.model
    logits = limits.max_num_seqs * padded_vocab(model.vocab_size) * engine.sampler_bytes
    hidden = engine.sampler_hidden_copies * _batch_bytes(deployment, model.hidden_size)
    if model.dtype_of("experts", deployment.quantization) not in engine.moe_workspace_held:
        return logits + hidden
    return logits + hidden + max((_workspace_bytes(deployment, layer.mlp) for layer in own), default=0.0)


def _widest_layer_bytes(deployment: Deployment, own: list[Layers], engine: Activations) -> float:
    """Return the widest moment of any layer: its feed-forward part, or its expanded latents [B]."""
    latents = min(engine.mla_context_tokens, 8 * deployment.limits.max_model_len)
    latents_bytes = latents * bytes_per_element(deployment.dtype)
    feed_forward = (
        _workspace_bytes(deployment, layer.mlp) + _batch_bytes(deployment, _feed_forward_width(layer.mlp))
        for layer in own
    )
    expanded = (latents_bytes * _expanded_width(layer.attention) for layer in own)
    return max([0.0, *feed_forward, *expanded])


def _feed_forward_width(mlp: AnyMlp) -> int:
    """Return the elements alive for one token: what goes into the activation function and what comes out."""
    if isinstance(mlp, DenseMlp):
        return (3 if mlp.gated else 2) * mlp.intermediate
    return (3 if mlp.gated else 2) * mlp.shared_intermediate if isinstance(mlp, MoeMlp) else 0


def _workspace_bytes(deployment: Deployment, mlp: AnyMlp) -> float:
    """Return the two buffers of fused experts and their output [B].

    vLLM `fused_moe.py: TritonExperts.workspace_shapes`: (tokens, top_k, max(N / 2, K)) and (tokens, top_k,
    max(N, K)) with N = 2 x the rank's expert width and K = hidden size; the output has (tokens, K).
    """
    if not isinstance(mlp, MoeMlp):
        return 0.0
    hidden, width = mlp.latent or deployment.model.hidden_size, mlp.expert_intermediate
    return _batch_bytes(deployment, mlp.top_k * (max(width, hidden) + max(2 * width, hidden)) + hidden)


def _expanded_width(attention: AnyAttention | None) -> int:
    """Return the elements of keys and values that one latent expands to on a rank (vLLM `mla/common.py`)."""
    if not isinstance(attention, LatentAttention):
        return 0
    return attention.heads * (attention.nope_head_dim + attention.v_head_dim)


def _index_bytes(deployment: Deployment, engine: Activations) -> float:
    """Return the scores of a sparse-attention indexer for a full batch against a full context [B]."""
    if not deployment.model.index_bytes_per_token:
        return 0.0
    limits = deployment.limits
    scores = engine.index_logits_bytes * limits.max_num_batched_tokens * limits.max_model_len
    return min(scores, engine.index_logits_cap_bytes.get(deployment.hardware.vendor, scores))
