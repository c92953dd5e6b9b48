"""Llama and the models that differ from it by a bias or a window: Mistral, Phi-3, Granite, Seed, SmolLM."""

from __future__ import annotations

from sim.profiles.huggingface.blocks import Architecture, dense, grouped, hidden, layer, num_layers, windows
from sim.profiles.huggingface.config import Config

__all__ = ["READERS"]


def _llama(config: Config) -> Architecture:
    """RMS norm before attention and before a gated feed-forward part; `attention_bias` is on all four projections."""
    bias = config.flag("attention_bias", False)
    out_bias = config.flag("attention_out_bias", bias)
    mlp = dense(config, bias=config.flag("mlp_bias", False))
    layers = [
        layer(grouped(config, qkv_bias=bias, o_bias=out_bias, window=tokens), mlp, 2 * hidden(config))
        for tokens in windows(config, num_layers(config))
    ]
    return Architecture(layers=layers)


READERS = dict.fromkeys(["llama", "mistral", "ministral3", "phi3", "granite", "seed_oss", "smollm3"], _llama)
