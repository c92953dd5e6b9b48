"""Phi-2 and Phi-3.5-MoE: LayerNorm with bias, biases everywhere, a bias on the head."""

from __future__ import annotations

from sim.profiles.huggingface.blocks import Architecture, dense, grouped, head_dim, hidden, layer, moe, num_layers
from sim.profiles.huggingface.config import Config

__all__ = ["READERS"]


def _phi(config: Config) -> Architecture:
    """Attention and feed-forward in parallel after one norm; 40 % of each head are rotary."""
    size = hidden(config)
    one = layer(grouped(config, qkv_bias=True, o_bias=True), dense(config, gated=False, bias=True), 2 * size)
    rotary = int(head_dim(config) * config.number("partial_rotary_factor", 0.5 if size < 2560 else 0.4))
    extra = 2 * size + config.whole("vocab_size")
    return Architecture(layers=[one] * num_layers(config), extra_params=extra, rotary_dim=rotary)


def _phimoe(config: Config) -> Architecture:
    size, bias = hidden(config), config.flag("attention_bias", False)
    one = layer(grouped(config, qkv_bias=bias, o_bias=bias), moe(config, "intermediate_size"), 4 * size)
    head_bias = config.whole("vocab_size") if config.flag("lm_head_bias", False) else 0
    return Architecture(layers=[one] * num_layers(config), extra_params=2 * size + head_bias)


READERS = {"phi": _phi, "phimoe": _phimoe}
