"""Jamba: one attention layer in eight, Mamba elsewhere, experts in every other layer, no position embeddings."""

from __future__ import annotations

from sim.profiles.huggingface.blocks import Architecture, dense, grouped, hidden, layer, moe, num_layers
from sim.profiles.huggingface.config import Config
from sim.profiles.layers import LinearAttention

__all__ = ["READERS"]


def _mamba(config: Config) -> LinearAttention:
    """Mamba mixer (arXiv 2312.00752) with Jamba's norms on dt, B and C; state and convolution inputs in 16 bit."""
    size, states, kernel = hidden(config), config.whole("mamba_d_state"), config.whole("mamba_d_conv")
    inner, rank = config.whole("mamba_expand") * size, config.whole("mamba_dt_rank")
    projections = size * 2 * inner + inner * (rank + 2 * states) + rank * inner + inner * size
    rest = inner * (kernel + 1) + inner + inner * states + inner + rank + 2 * states
    return LinearAttention(params=projections + rest, state_bytes=2 * inner * (states + kernel - 1))


def _read(config: Config) -> Architecture:
    attention, mamba, size = grouped(config), _mamba(config), hidden(config)
    every, offset = config.whole("attn_layer_period"), config.whole("attn_layer_offset", least=0)
    expert_every, expert_offset = config.whole("expert_layer_period"), config.whole("expert_layer_offset", least=0)
    layers = [
        layer(
            attention if index % every == offset else mamba,
            moe(config, "intermediate_size") if index % expert_every == expert_offset else dense(config),
            2 * size,
        )
        for index in range(num_layers(config))
    ]
    return Architecture(layers=layers, rotary_dim=0)


READERS = {"jamba": _read}
