"""Nemotron-H and Nemotron 3: each layer is a Mamba-2 mixer, attention, or a feed-forward part, as a pattern says."""

from __future__ import annotations

from collections.abc import Callable

from sim.profiles.huggingface.blocks import Architecture, grouped, hidden, layer, moe, num_layers
from sim.profiles.huggingface.config import Config
from sim.profiles.layers import DenseMlp, Layers, LinearAttention, MoeMlp, NoMlp

__all__ = ["READERS", "mamba2"]


def mamba2(config: Config) -> LinearAttention:
    """Mamba-2 mixer (arXiv 2405.21060): input projection to z, x, B, C, dt; convolution with bias; A, D, dt bias; norm.

    The state is width x state size in the type of `mamba_ssm_cache_dtype`, and the last inputs of the convolution.
    """
    size, count = hidden(config), config.whole("mamba_num_heads")
    inner, states = count * config.whole("mamba_head_dim"), config.whole("ssm_state_size")
    kernel, mixed = config.whole("conv_kernel"), inner + 2 * config.whole("n_groups") * states
    params = size * (inner + mixed + count) + mixed * (kernel + 1) + 3 * count + inner + inner * size
    element_bytes = 4 if config.text("mamba_ssm_cache_dtype") == "float32" else 2
    return LinearAttention(params=params, state_bytes=inner * states * element_bytes + mixed * (kernel - 1) * 2)


def _attention(config: Config) -> Layers:
    bias = config.flag("attention_bias", False)
    return layer(grouped(config, qkv_bias=bias, o_bias=bias), NoMlp(), hidden(config))


def _mixer(config: Config) -> Layers:
    return layer(mamba2(config), NoMlp(), hidden(config))


def _dense(config: Config) -> Layers:
    return layer(None, DenseMlp(intermediate=config.whole("intermediate_size"), gated=False), hidden(config))


def _experts(config: Config) -> Layers:
    """Squared-ReLU experts of two matrices; in the larger model they work on a latent (`moe_latent_size`)."""
    shared = config.whole("n_shared_experts", default=0, least=0) * config.whole(
        "moe_shared_expert_intermediate_size", default=0, least=0
    )
    latent = config.whole("moe_latent_size") if config.has("moe_latent_size") else None
    routed: MoeMlp = moe(config, shared=shared, router_bias=True, gated=False, latent=latent)
    return layer(None, routed, hidden(config))


KINDS: dict[str, Callable[[Config], Layers]] = {"M": _mixer, "*": _attention, "-": _dense, "E": _experts}


def _read(config: Config) -> Architecture:
    pattern, count = config.text("hybrid_override_pattern"), num_layers(config)
    if len(pattern) != count or set(pattern) - set(KINDS):
        config.fail("hybrid_override_pattern", f"{pattern[:40]!r} is not {count} letters out of {' '.join(KINDS)}")
    kinds = {letter: KINDS[letter](config) for letter in sorted(set(pattern))}
    notes = ["MTP layers of the checkpoint are not counted."] if config.has("num_nextn_predict_layers") else []
    return Architecture(layers=[kinds[letter] for letter in pattern], rotary_dim=0, notes=notes)


READERS = {"nemotron_h": _read}
