"""How many weights a model has, and which of them one token passes.

Every formula was checked against the totals that Hugging Face shows for the checkpoints and against the weight memory
that vLLM logs (`tests/reference/test_model_params.py`). In them h is the hidden size.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal

from sim.profiles.layers import (
    AnyAttention,
    AnyMlp,
    CompressedAttention,
    DenseMlp,
    GroupedAttention,
    LatentAttention,
    Layers,
    LinearAttention,
    MoeMlp,
)
from sim.profiles.quantization import Part

__all__ = ["Component", "absorbed_params", "active_params", "attention_params", "expert_params", "layer_params"]

Component = Part | Literal["other"]
"""A part that may have its own data type, or `other`: norms, biases, routers, which stay in 16 bit."""


def attention_params(attention: AnyAttention, hidden_size: int) -> int:
    """Count the matrices of one attention layer; norms and biases are its `extra_params`."""
    if isinstance(attention, LinearAttention):
        return attention.params
    if isinstance(attention, GroupedAttention):
        matrices = _grouped(attention, hidden_size)
    elif isinstance(attention, LatentAttention):
        matrices = _latent(attention, hidden_size)
    else:
        matrices = _compressed(attention, hidden_size)
    return matrices + (attention.indexer.params if attention.indexer else 0)


def _grouped(attention: GroupedAttention, hidden_size: int) -> int:
    """Q, K, V, O: h*H*d + h*G*d + h*G*dv + H*dv*h for H heads and G KV heads; a gate doubles Q (Qwen3-Next)."""
    query = attention.heads * attention.head_dim * (2 if attention.output_gate else 1)
    key = 0 if attention.reuses_kv else attention.kv_heads * attention.head_dim
    value = 0 if attention.reuses_kv or attention.value_is_key else attention.kv_heads * attention.v_head_dim
    return hidden_size * (query + key + value + attention.heads * attention.v_head_dim)


def _latent(attention: LatentAttention, hidden_size: int) -> int:
    """DeepSeek-V2 report (arXiv 2405.04434, section 2.1): down and up projections of query and latent, output."""
    query = attention.heads * (attention.nope_head_dim + attention.rope_head_dim)
    rank = attention.q_lora_rank
    down_up = hidden_size * query if rank is None else rank * (hidden_size + query)
    latent = hidden_size * (attention.kv_lora_rank + attention.rope_head_dim)
    keys_values = attention.kv_lora_rank * attention.heads * (attention.nope_head_dim + attention.v_head_dim)
    output = attention.heads * attention.v_head_dim * hidden_size
    return down_up + latent + keys_values + output * (2 if attention.output_gate else 1)


def absorbed_params(attention: AnyAttention | None) -> int:
    """Count the second copy of the latent's up-projection that engines keep for absorbed decoding.

    vLLM, `MLACommonImpl.process_weights_after_loading`: `W_UK` and `W_UV` beside `kv_b_proj`, unquantised.
    """
    if not isinstance(attention, LatentAttention):
        return 0
    return attention.kv_lora_rank * attention.heads * (attention.nope_head_dim + attention.v_head_dim)


def _compressed(attention: CompressedAttention, hidden_size: int) -> int:
    """DeepSeek V4 (transformers `modeling_deepseek_v4.py`): low-rank query, one KV vector, grouped low-rank output."""
    heads = attention.heads * attention.head_dim
    query = attention.q_lora_rank * (hidden_size + heads)
    output = attention.o_lora_rank * (heads + attention.o_groups * hidden_size)
    return query + hidden_size * attention.head_dim + output


def expert_params(moe: MoeMlp, hidden_size: int) -> int:
    """Count one routed expert: three matrices of width x intermediate if gated, else two."""
    return (3 if moe.gated else 2) * (moe.latent or hidden_size) * moe.expert_intermediate


def _mlp_params(mlp: AnyMlp, hidden_size: int) -> Counter[Component]:
    """Dense: 3*h*I gated, 2*h*I not. MoE: E experts, h*E of the router, 3*h*S shared, 2*h*latent around the experts."""
    if isinstance(mlp, DenseMlp):
        return Counter({"mlp": (3 if mlp.gated else 2) * hidden_size * mlp.intermediate, "other": mlp.extra_params})
    if not isinstance(mlp, MoeMlp):
        return Counter()
    shared = (3 if mlp.gated else 2) * hidden_size * mlp.shared_intermediate + 2 * hidden_size * (mlp.latent or 0)
    return Counter(
        {
            "experts": mlp.experts * expert_params(mlp, hidden_size),
            "mlp": shared,
            "other": mlp.experts * (hidden_size + mlp.expert_biases) + mlp.extra_params,
        }
    )


def layer_params(layer: Layers, hidden_size: int) -> Counter[Component]:
    """Count the weights of *one* of these layers by component."""
    counts: Counter[Component] = Counter({"other": layer.norm_params})
    counts.update(_mlp_params(layer.mlp, hidden_size))
    if layer.attention is not None:
        counts["attention"] += attention_params(layer.attention, hidden_size)
        counts["other"] += getattr(layer.attention, "extra_params", 0)
    return counts


def active_params(layer: Layers, hidden_size: int) -> int:
    """Count the weights of one layer that one token passes: all but the routed experts it is not sent to."""
    total = layer_params(layer, hidden_size).total()
    if not isinstance(layer.mlp, MoeMlp):
        return total
    idle = layer.mlp.experts - layer.mlp.top_k
    return total - idle * (expert_params(layer.mlp, hidden_size) + layer.mlp.expert_biases)
