"""GLM-4.5 and 4.6: grouped attention with biases, first layers dense, shared experts, an MTP layer."""

from __future__ import annotations

from sim.profiles.huggingface.blocks import (
    Architecture,
    dense,
    grouped,
    head_dim,
    hidden,
    layer,
    moe,
    mtp_params,
    num_layers,
    sparse_layers,
)
from sim.profiles.huggingface.config import Config
from sim.profiles.huggingface.families.deepseek import shared_width

__all__ = ["READERS"]


def _read(config: Config) -> Architecture:
    norms = 2 * head_dim(config) if config.flag("use_qk_norm", False) else 0
    attention = grouped(config, qkv_bias=config.flag("attention_bias", False), extra=norms)
    routed = moe(config, shared=shared_width(config), router_bias=True)
    layers = [
        layer(attention, routed if sparse else dense(config), 2 * hidden(config))
        for sparse in sparse_layers(config, num_layers(config))
    ]
    return Architecture(layers=layers, mtp_params=mtp_params(config, layers[-1]))


READERS = {"glm4_moe": _read}
