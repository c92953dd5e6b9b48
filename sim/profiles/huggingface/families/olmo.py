"""OLMo 2 and 3: norms after attention and feed-forward, and QK norms over all heads together."""

from __future__ import annotations

from sim.profiles.huggingface.blocks import (
    Architecture,
    dense,
    grouped,
    head_dim,
    heads,
    hidden,
    layer,
    num_layers,
    sliding_layers,
    window,
)
from sim.profiles.huggingface.config import Config
from sim.profiles.layers import GroupedAttention

__all__ = ["READERS"]


def _attention(config: Config, tokens: int | None) -> GroupedAttention:
    kv_heads = config.whole("num_key_value_heads", default=heads(config))
    return grouped(config, extra=(heads(config) + kv_heads) * head_dim(config), window=tokens)


def _olmo2(config: Config) -> Architecture:
    return Architecture(
        layers=[layer(_attention(config, None), dense(config), 2 * hidden(config))] * num_layers(config)
    )


def _olmo3(config: Config) -> Architecture:
    """Every fourth layer is global (transformers `Olmo3Config`)."""
    layers = [
        layer(_attention(config, window(config) if sliding else None), dense(config), 2 * hidden(config))
        for sliding in sliding_layers(config, num_layers(config), default=4)
    ]
    return Architecture(layers=layers, local_rotary=True)


READERS = {"olmo2": _olmo2, "olmo3": _olmo3}
