"""Kimi Linear and Kimi K3: three layers of Kimi delta attention for each layer of latent attention."""

from __future__ import annotations

from sim.profiles.huggingface.blocks import Architecture, dense, hidden, layer, moe, num_layers, sparse_layers
from sim.profiles.huggingface.config import Config
from sim.profiles.huggingface.families.deepseek import latent, shared_width
from sim.profiles.layers import LinearAttention

__all__ = ["READERS"]


def _delta(config: Config, linear: Config) -> LinearAttention:
    """Kimi delta attention (transformers `KimiLinearDeltaAttention`): Q, K, V, O, low-rank forget and output gate.

    The state is a key x value matrix a head in fp32, and the last inputs of three convolutions in 16 bit.
    """
    size, count, width = hidden(config), linear.whole("num_heads"), linear.whole("head_dim")
    kernel, inner = linear.whole("short_conv_kernel_size"), count * width
    low_rank = width * (size + inner)
    gate = size * inner if linear.flag("use_full_rank_gate", False) else low_rank
    params = 4 * size * inner + 3 * inner * kernel + low_rank + gate + size * count + inner + count + width
    return LinearAttention(params=params, state_bytes=count * width * width * 4 + 3 * inner * (kernel - 1) * 2)


def _read(config: Config) -> Architecture:
    linear = config.part("linear_attn_config")
    if linear is None:
        config.fail("linear_attn_config", "missing, and this architecture (kimi_linear) needs it")
    count, size = num_layers(config), hidden(config)
    full = linear.indices("full_attn_layers")  # counted from 1
    attention = latent(config, output_gate=config.flag("mla_use_output_gate", False))
    expert_width = config.whole("routed_expert_hidden_size") if config.has("routed_expert_hidden_size") else None
    routed = moe(config, shared=shared_width(config), router_bias=True, latent=expert_width)
    delta = _delta(config, linear)
    layers = [
        layer(attention if index + 1 in full else delta, routed if sparse else dense(config), 2 * size)
        for index, sparse in enumerate(sparse_layers(config, count))
    ]
    return Architecture(layers=layers, rotary_dim=0, notes=_notes(config))


def _notes(config: Config) -> list[str]:
    if not config.has("attn_res_block_size"):
        return []
    return ["Weights of the attention residuals (attn_res_block_size) are not counted; no source states their shapes."]


READERS = {"kimi_linear": _read}
