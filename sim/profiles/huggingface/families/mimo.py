"""MiMo-V2-Flash: keys wider than values, and layers with a window of 128 tokens that have their own head counts."""

from __future__ import annotations

from sim.profiles.huggingface.blocks import Architecture, dense, grouped, hidden, layer, moe, num_layers, sparse_layers
from sim.profiles.huggingface.config import Config
from sim.profiles.huggingface.families.deepseek import shared_width
from sim.profiles.layers import GroupedAttention

__all__ = ["READERS"]


def _read(config: Config) -> Architecture:
    count = num_layers(config)
    pattern = config.wholes("hybrid_layer_pattern", count)
    if pattern is None:
        config.fail("hybrid_layer_pattern", "missing, and this architecture (mimo_v2_flash) needs it")
    attention = {0: _attention(config, "", None), 1: _attention(config, "swa_", config.whole("sliding_window"))}
    routed = moe(config, shared=shared_width(config), router_bias=True)
    layers = [
        layer(attention[min(sliding, 1)], routed if sparse else dense(config), 2 * hidden(config))
        for sliding, sparse in zip(pattern, sparse_layers(config, count), strict=True)
    ]
    return Architecture(layers=layers, local_rotary=True)


def _attention(config: Config, prefix: str, window: int | None) -> GroupedAttention:
    heads = config.whole(f"{prefix}num_attention_heads", "num_attention_heads")
    sink = config.flag(f"add_{prefix or 'full_'}attention_sink_bias", default=bool(prefix))
    return grouped(
        config,
        qkv_bias=config.flag("attention_bias", False),
        extra=heads if sink else 0,
        heads=heads,
        kv_heads=config.whole(f"{prefix}num_key_value_heads", "num_key_value_heads"),
        head_dim=config.whole(f"{prefix}head_dim", "head_dim"),
        v_head_dim=config.whole(f"{prefix}v_head_dim", "v_head_dim", "head_dim"),
        window=window,
    )


READERS = {"mimo_v2_flash": _read}
