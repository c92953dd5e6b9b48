"""Llama-Nemotron (DeciLM): a search removed attention from some layers and chose each feed-forward width."""

from __future__ import annotations

from sim.profiles.huggingface.blocks import Architecture, grouped, heads, hidden, layer, num_layers
from sim.profiles.huggingface.config import Config
from sim.profiles.layers import AnyAttention, AnyMlp, DenseMlp, Layers, NoMlp

__all__ = ["READERS"]

WIDTH_MULTIPLE = 256


def _read(config: Config) -> Architecture:
    """Read of each layer in `block_configs` the heads a KV group and the factor of the width; either may be none."""
    count = num_layers(config)
    blocks = list(config.parts("block_configs", count))
    if len(blocks) != count:
        config.fail("block_configs", "missing, and this architecture (nemotron-nas) needs it")
    return Architecture(layers=[_block(config, block) for block in blocks])


def _block(config: Config, block: Config) -> Layers:
    attention, mlp = _attention(config, block), _mlp(config, block)
    norms = (attention is not None) + (not isinstance(mlp, NoMlp))
    return layer(attention, mlp, norms * hidden(config))


def _present(block: Config, name: str) -> Config | None:
    """Return a part of a block, or None where it was removed; a linear layer instead of it is refused."""
    part = block.part(name)
    if part is None or part.flag("no_op", False):
        return None
    if part.flag("replace_with_linear", False):
        part.fail("replace_with_linear", "a linear layer instead of attention or feed-forward is not supported")
    return part


def _attention(config: Config, block: Config) -> AnyAttention | None:
    part = _present(block, "attention")
    if part is None:
        return None
    group = part.whole("n_heads_in_group")
    if heads(config) % group:
        part.fail("n_heads_in_group", f"{group} does not divide {heads(config)} heads")
    window = part.whole("window_length") if part.has("window_length") else None
    return grouped(config, kv_heads=heads(config) // group, window=window)


def _mlp(config: Config, block: Config) -> AnyMlp:
    part = _present(block, "ffn")
    if part is None:
        return NoMlp()
    width = int(2 * part.number("ffn_mult", 4.0) * hidden(config) / 3)
    return DenseMlp(intermediate=-(-width // WIDTH_MULTIPLE) * WIDTH_MULTIPLE)


READERS = {"nemotron-nas": _read}
