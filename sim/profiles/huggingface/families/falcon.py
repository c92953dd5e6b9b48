"""Falcon: one KV head (7B) or a few (40B), two feed-forward matrices beside attention, LayerNorm with bias."""

from __future__ import annotations

from sim.profiles.huggingface.blocks import Architecture, grouped, hidden, layer, num_layers
from sim.profiles.huggingface.config import Config
from sim.profiles.layers import DenseMlp

__all__ = ["READERS"]


def _read(config: Config) -> Architecture:
    size, bias = hidden(config), config.flag("bias", False)
    new = config.flag("new_decoder_architecture", False)
    fields = {"kv_heads": 1} if config.flag("multi_query", True) and not new else {}
    width = config.whole("ffn_hidden_size", default=4 * size)
    mlp = DenseMlp(intermediate=width, gated=False, extra_params=width + size if bias else 0)
    norms = 4 * size if new or not config.flag("parallel_attn", True) else 2 * size
    one = layer(grouped(config, qkv_bias=bias, o_bias=bias, **fields), mlp, norms)
    return Architecture(
        layers=[one] * num_layers(config), tied=True, extra_params=2 * size, max_position_embeddings=2048
    )


READERS = {"falcon": _read}
