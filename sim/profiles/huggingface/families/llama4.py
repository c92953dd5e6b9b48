"""Llama 4: three of four layers attend within chunks of 8,192 tokens; experts in every layer (Scout) or every other."""

from __future__ import annotations

from sim.profiles.huggingface.blocks import FULL, Architecture, dense, grouped, hidden, layer, moe, num_layers
from sim.profiles.huggingface.config import Config
from sim.profiles.layers import GroupedAttention

__all__ = ["READERS"]


def _read(config: Config) -> Architecture:
    """Give all experts `intermediate_size` and dense layers `intermediate_size_mlp`; QK norms have no weights."""
    count = num_layers(config)
    step = config.whole("interleave_moe_layer_step", default=1)
    sparse = config.indices("moe_layers") or frozenset(range(step - 1, count, step))
    routed = moe(config, "intermediate_size", shared=config.whole("intermediate_size"))
    layers = [
        layer(
            _attention(config, local),
            routed if index in sparse else dense(config, "intermediate_size_mlp"),
            2 * hidden(config),
        )
        for index, local in enumerate(_chunked_layers(config, count))
    ]
    return Architecture(layers=layers)


def _chunked_layers(config: Config, count: int) -> list[bool]:
    """Say which layers are chunked: those with rotary embeddings, 1 in `no_rope_layers`; if that is empty, 3 of 4."""
    if kinds := config.texts("layer_types", count, frozenset({FULL, "chunked_attention"})):
        return [kind != FULL for kind in kinds]
    if config.get("no_rope_layers")[1]:
        return [bool(value) for value in config.wholes("no_rope_layers", count) or ()]
    interval = config.whole("no_rope_layer_interval", default=4)
    return [(index + 1) % interval != 0 for index in range(count)]


def _attention(config: Config, local: bool) -> GroupedAttention:
    bias = config.flag("attention_bias", False)
    window = config.whole("attention_chunk_size", default=8192) if local else None
    return grouped(config, qkv_bias=bias, o_bias=bias, window=window, chunked=local)


READERS = {"llama4_text": _read}
