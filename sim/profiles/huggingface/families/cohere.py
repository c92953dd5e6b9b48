"""Command R: attention and feed-forward in parallel after one norm, tied embeddings."""

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

__all__ = ["READERS"]


def _cohere(config: Config) -> Architecture:
    kv_heads = config.whole("num_key_value_heads", default=heads(config))
    norms = (heads(config) + kv_heads) * head_dim(config) if config.flag("use_qk_norm", False) else 0
    attention = grouped(config, extra=norms)
    return Architecture(layers=[layer(attention, dense(config), hidden(config))] * num_layers(config), tied=True)


def _cohere2(config: Config) -> Architecture:
    """Every fourth layer is global (transformers `Cohere2Config`)."""
    layers = [
        layer(grouped(config, window=window(config) if sliding else None), dense(config), hidden(config))
        for sliding in sliding_layers(config, num_layers(config), default=4)
    ]
    return Architecture(layers=layers, tied=True)


READERS = {"cohere": _cohere, "cohere2": _cohere2}
