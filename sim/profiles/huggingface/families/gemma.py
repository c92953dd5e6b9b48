"""Gemma 1 to 4: tied embeddings, four norms a layer from Gemma 2 on, and layers that keep a window."""

from __future__ import annotations

from typing import Any

from sim.profiles.huggingface.blocks import (
    Architecture,
    dense,
    grouped,
    head_dim,
    hidden,
    layer,
    moe,
    num_layers,
    sliding_layers,
    window,
)
from sim.profiles.huggingface.config import Config
from sim.profiles.layers import AnyMlp, DenseMlp, GroupedAttention

__all__ = ["READERS"]


def _gemma(config: Config) -> Architecture:
    return Architecture(
        layers=[layer(grouped(config), dense(config), 2 * hidden(config))] * num_layers(config), tied=True
    )


def _gemma2(config: Config) -> Architecture:
    """Every other layer is global."""
    layers = [
        layer(grouped(config, window=window(config) if sliding else None), dense(config), 4 * hidden(config))
        for sliding in sliding_layers(config, num_layers(config), default=2)
    ]
    return Architecture(layers=layers, tied=True)


def _gemma3(config: Config) -> Architecture:
    """Every sixth layer is global; QK norms; defaults of `Gemma3TextConfig` for what the larger models leave out."""
    layers = [
        layer(
            grouped(config, extra=2 * head_dim(config), window=window(config) if sliding else None),
            dense(config),
            4 * hidden(config),
        )
        for sliding in sliding_layers(config, num_layers(config), default=6)
    ]
    return Architecture(
        layers=layers, tied=True, local_rotary=True, vocab_size=262_208, max_position_embeddings=131_072
    )


def _gemma4(config: Config) -> Architecture:
    """Read Gemma 4: global layers have wider heads and may use the key as value; experts sit beside a dense part.

    The small models (E2B, E4B) also embed every token once a layer, and their last layers reuse an earlier cache.
    """
    count, size = num_layers(config), hidden(config)
    first_reusing = count - config.whole("num_kv_shared_layers", default=0, least=0)
    wide = 2 if config.flag("use_double_wide_mlp", False) else 1
    per_layer = config.whole("hidden_size_per_layer_input", default=256, least=0)
    norms = 4 * size + (2 * per_layer * size + size if per_layer else 0)
    layers = [
        layer(
            _gemma4_attention(config, sliding, reuses=index >= first_reusing),
            _gemma4_mlp(config, wide if index >= first_reusing else 1),
            norms + (3 * size if config.flag("enable_moe_block", False) else 0),
        )
        for index, sliding in enumerate(sliding_layers(config, count, default=6))
    ]
    rows = config.whole("vocab_size_per_layer_input", default=config.whole("vocab_size"))
    inputs = per_layer * count * (rows + size) + per_layer if per_layer else 0
    return Architecture(layers=layers, tied=True, extra_params=size + inputs)


def _gemma4_attention(config: Config, sliding: bool, *, reuses: bool) -> GroupedAttention:
    if sliding:
        return grouped(config, window=window(config), reuses_kv=reuses, extra=2 * head_dim(config))
    shape: dict[str, Any] = {"head_dim": config.whole("global_head_dim", default=512)}
    shared_kv = config.flag("attention_k_eq_v", False)
    if shared_kv and config.has("num_global_key_value_heads"):
        shape["kv_heads"] = config.whole("num_global_key_value_heads")
    return grouped(config, value_is_key=shared_kv, reuses_kv=reuses, extra=2 * shape["head_dim"], **shape)


def _gemma4_mlp(config: Config, wide: int) -> AnyMlp:
    width = wide * config.whole("intermediate_size")
    if not config.flag("enable_moe_block", False):
        return DenseMlp(intermediate=width)
    experts = config.whole("num_experts")
    return moe(config, shared=width, extra=hidden(config) + experts)


READERS = {"gemma": _gemma, "gemma2": _gemma2, "gemma3_text": _gemma3, "gemma4_text": _gemma4}
