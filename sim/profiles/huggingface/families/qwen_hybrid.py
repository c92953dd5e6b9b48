"""Qwen3-Next, Qwen3.5 and Qwen3.6: three layers of gated delta net for each layer of gated full attention."""

from __future__ import annotations

from sim.profiles.huggingface.blocks import (
    FULL,
    Architecture,
    dense,
    grouped,
    head_dim,
    hidden,
    layer,
    moe,
    mtp_params,
    num_layers,
)
from sim.profiles.huggingface.config import Config
from sim.profiles.layers import AnyAttention, AnyMlp, LinearAttention

__all__ = ["READERS"]

LINEAR = "linear_attention"


def delta_net(config: Config) -> LinearAttention:
    """Gated delta net (transformers `Qwen3NextGatedDeltaNet`): Q, K, V, gate, two scalars a head, convolution, output.

    The state is a key x value matrix a head, and the last inputs of the convolution in 16 bit.
    """
    size, conv = hidden(config), config.whole("linear_conv_kernel_dim")
    value_heads, value_dim = config.whole("linear_num_value_heads"), config.whole("linear_value_head_dim")
    key_dim = config.whole("linear_key_head_dim")
    keys, values = config.whole("linear_num_key_heads") * key_dim, value_heads * value_dim
    mixed = 2 * keys + values
    params = size * (mixed + values + 2 * value_heads) + mixed * conv + 2 * value_heads + value_dim + values * size
    element_bytes = 4 if config.text("mamba_ssm_dtype") == "float32" else 2
    state = values * key_dim * element_bytes + mixed * (conv - 1) * 2
    return LinearAttention(params=params, state_bytes=state)


def _mlp(config: Config) -> AnyMlp:
    if not config.has("num_experts"):
        return dense(config)
    shared = config.whole("shared_expert_intermediate_size", default=0, least=0)
    return moe(config, shared=shared, extra=hidden(config) if shared else 0)


def _read(config: Config) -> Architecture:
    count, size = num_layers(config), hidden(config)
    attention = grouped(config, output_gate=config.flag("attn_output_gate", True), extra=2 * head_dim(config))
    kinds = config.texts("layer_types", count, frozenset({FULL, LINEAR}))
    if kinds is None:
        interval = config.whole("full_attention_interval")
        kinds = [FULL if (index + 1) % interval == 0 else LINEAR for index in range(count)]
    mixers: dict[str, AnyAttention] = {FULL: attention, LINEAR: delta_net(config)}
    layers = [layer(mixers[kind], _mlp(config), 2 * size) for kind in kinds]
    return Architecture(layers=layers, mtp_params=mtp_params(config, layer(attention, _mlp(config), 2 * size)))


READERS = dict.fromkeys(["qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"], _read)
