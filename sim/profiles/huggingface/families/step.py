"""Step-3.5 and 3.7 Flash: one global layer in four, a gate a head, a shared expert."""

from __future__ import annotations

from sim.profiles.huggingface.blocks import (
    Architecture,
    dense,
    grouped,
    head_dim,
    heads,
    hidden,
    layer,
    moe,
    num_layers,
    sliding_layers,
    sparse_layers,
    window,
)
from sim.profiles.huggingface.config import Config
from sim.profiles.huggingface.families.deepseek import shared_width
from sim.profiles.layers import GroupedAttention

__all__ = ["READERS"]


def _read(config: Config) -> Architecture:
    """As transformers `Step3p7Attention`: QK norms and one gate a head; windowed layers may have more heads."""
    count = num_layers(config)
    shared = config.whole("share_expert_dim", "share_expert_dims", default=shared_width(config), least=0)
    routed = moe(config, shared=shared, router_bias=config.flag("use_moe_router_bias", False))
    layers = [
        layer(_attention(config, sliding), routed if sparse else dense(config), 2 * hidden(config))
        for sliding, sparse in zip(sliding_layers(config, count), sparse_layers(config, count), strict=True)
    ]
    return Architecture(layers=layers, local_rotary=True, notes=["MTP layers of the checkpoint are not counted."])


def _attention(config: Config, sliding: bool) -> GroupedAttention:
    other = config.part("attention_other_setting") if sliding else None
    count = heads(config) if other is None else other.whole("num_attention_heads", default=heads(config))
    extra = 2 * head_dim(config) + hidden(config) * count
    return grouped(config, heads=count, extra=extra, window=window(config) if sliding else None)


READERS = dict.fromkeys(["step3p5", "step3p7"], _read)
