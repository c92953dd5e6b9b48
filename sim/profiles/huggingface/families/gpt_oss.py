"""gpt-oss: every other layer keeps 128 tokens, sinks, biases on everything, experts in mxfp4."""

from __future__ import annotations

from sim.profiles.huggingface.blocks import (
    Architecture,
    grouped,
    heads,
    hidden,
    layer,
    moe,
    num_layers,
    sliding_layers,
    window,
)
from sim.profiles.huggingface.config import Config

__all__ = ["READERS"]


def _read(config: Config) -> Architecture:
    """`intermediate_size` is that of one expert; expert biases (2*I + h each) stay in 16 bit."""
    size = hidden(config)
    biases = 2 * config.whole("intermediate_size") + size
    routed = moe(config, "intermediate_size", expert_biases=biases, router_bias=True)
    layers = [
        layer(
            grouped(
                config, qkv_bias=True, o_bias=True, extra=heads(config), window=window(config) if sliding else None
            ),
            routed,
            2 * size,
        )
        for sliding in sliding_layers(config, num_layers(config), default=2)
    ]
    return Architecture(layers=layers)


READERS = {"gpt_oss": _read}
