"""Qwen2, Qwen2.5, Qwen3 and their MoE and vision-language versions, and MiMo-7B, which is a Qwen2 with an MTP layer."""

from __future__ import annotations

from sim.profiles.huggingface.blocks import (
    Architecture,
    dense,
    grouped,
    head_dim,
    hidden,
    layer,
    moe,
    mtp_params,
    num_layers,
    sparse_layers,
    windows,
)
from sim.profiles.huggingface.config import Config
from sim.profiles.layers import GroupedAttention

__all__ = ["READERS"]


def _qwen2(config: Config) -> Architecture:
    """Biases on Q, K and V; some models window the layers from `max_window_layers` on."""
    layers = [
        layer(grouped(config, qkv_bias=True, window=tokens), dense(config), 2 * hidden(config))
        for tokens in windows(config, num_layers(config))
    ]
    return Architecture(layers=layers, mtp_params=mtp_params(config, layers[-1]))


def _qwen2_moe(config: Config) -> Architecture:
    attention = [grouped(config, qkv_bias=True, window=tokens) for tokens in windows(config, num_layers(config))]
    return _with_experts(config, attention)


def _normed(config: Config) -> list[GroupedAttention]:
    """Qwen3: RMS norms over each head of Q and K, no biases unless `attention_bias` says so."""
    bias, norms = config.flag("attention_bias", False), 2 * head_dim(config)
    return [
        grouped(config, qkv_bias=bias, o_bias=bias, extra=norms, window=tokens)
        for tokens in windows(config, num_layers(config))
    ]


def _qwen3(config: Config) -> Architecture:
    return Architecture(layers=[layer(one, dense(config), 2 * hidden(config)) for one in _normed(config)])


def _qwen3_moe(config: Config) -> Architecture:
    return _with_experts(config, _normed(config))


def _with_experts(config: Config, attention: list[GroupedAttention]) -> Architecture:
    """Read layers with experts; a shared expert, where there is one, has a gate of one row."""
    shared = config.whole("shared_expert_intermediate_size", default=0, least=0)
    routed = moe(config, shared=shared, extra=hidden(config) if shared else 0)
    layers = [
        layer(one, routed if sparse else dense(config), 2 * hidden(config))
        for one, sparse in zip(attention, sparse_layers(config, len(attention)), strict=True)
    ]
    return Architecture(layers=layers)


READERS = {
    **dict.fromkeys(["qwen2", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text", "mimo"], _qwen2),
    **dict.fromkeys(["qwen3", "qwen3_vl_text"], _qwen3),
    "qwen2_moe": _qwen2_moe,
    **dict.fromkeys(["qwen3_moe", "qwen3_vl_moe_text"], _qwen3_moe),
}
