"""Experts in every layer and nothing beside them: Mixtral, DBRX, OLMoE, Granite MoE."""

from __future__ import annotations

from sim.profiles.huggingface.blocks import (
    Architecture,
    grouped,
    head_dim,
    heads,
    hidden,
    layer,
    moe,
    num_layers,
    window,
)
from sim.profiles.huggingface.config import Config
from sim.profiles.layers import MoeMlp

__all__ = ["READERS"]


def _mixtral(config: Config) -> Architecture:
    """`intermediate_size` is that of one expert."""
    bias = config.flag("attention_bias", False)
    attention = grouped(config, qkv_bias=bias, o_bias=bias, window=window(config))
    one = layer(attention, moe(config, "intermediate_size"), 2 * hidden(config))
    return Architecture(layers=[one] * num_layers(config))


def _olmoe(config: Config) -> Architecture:
    kv_heads = config.whole("num_key_value_heads", default=heads(config))
    attention = grouped(config, extra=(heads(config) + kv_heads) * head_dim(config))
    return Architecture(
        layers=[layer(attention, moe(config, "intermediate_size"), 2 * hidden(config))] * num_layers(config)
    )


def _dbrx(config: Config) -> Architecture:
    """Sizes of attention and experts are in objects of their own; LayerNorm without bias."""
    attention, ffn = config.part("attn_config"), config.part("ffn_config")
    if attention is None or ffn is None:
        config.fail(
            "attn_config" if attention is None else "ffn_config", "missing, and this architecture (dbrx) needs it"
        )
    experts = MoeMlp(
        experts=ffn.whole("moe_num_experts", most=100_000),
        top_k=ffn.whole("moe_top_k"),
        expert_intermediate=ffn.whole("ffn_hidden_size"),
    )
    one = layer(grouped(config, kv_heads=attention.whole("kv_n_heads")), experts, 2 * hidden(config))
    return Architecture(layers=[one] * num_layers(config))


READERS = {"mixtral": _mixtral, "granitemoe": _mixtral, "olmoe": _olmoe, "dbrx": _dbrx}
