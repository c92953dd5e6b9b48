"""Latent attention with experts: DeepSeek V2, V3, R1, V3.2, Kimi K2, GLM-4.7-Flash, GLM-5."""

from __future__ import annotations

from sim.profiles.huggingface.blocks import (
    Architecture,
    dense,
    heads,
    hidden,
    layer,
    moe,
    mtp_params,
    num_layers,
    sparse_layers,
)
from sim.profiles.huggingface.config import Config
from sim.profiles.layers import AnyMlp, Indexer, LatentAttention

__all__ = ["READERS", "latent", "shared_width"]


def latent(config: Config, *, output_gate: bool = False) -> LatentAttention:
    """Latent attention; `num_key_value_heads` and `head_dim` of these configs mean nothing for the cache."""
    rank = config.whole("q_lora_rank") if config.has("q_lora_rank") else None
    kv_rank = config.whole("kv_lora_rank")
    return LatentAttention(
        heads=heads(config),
        q_lora_rank=rank,
        kv_lora_rank=kv_rank,
        nope_head_dim=config.whole("qk_nope_head_dim"),
        rope_head_dim=config.whole("qk_rope_head_dim"),
        v_head_dim=config.whole("v_head_dim"),
        output_gate=output_gate,
        indexer=_indexer(config, rank) if config.has("index_topk") else None,
        extra_params=(rank or 0) + kv_rank,
    )


def _indexer(config: Config, rank: int | None) -> Indexer:
    """Lightning indexer: queries from the query latent, one key with LayerNorm, one weight a head."""
    count, width = config.whole("index_n_heads"), config.whole("index_head_dim")
    size = hidden(config)
    params = (rank or size) * count * width + size * width + 2 * width + size * count
    return Indexer(heads=count, head_dim=width, top_k=config.whole("index_topk"), params=params)


def shared_width(config: Config) -> int:
    """Return the width of all shared experts together."""
    count = config.whole("n_shared_experts", "num_shared_experts", default=0, least=0)
    return count * config.whole("moe_intermediate_size")


def _read(config: Config, *, router_bias: bool) -> Architecture:
    attention, size = latent(config), hidden(config)
    routed: AnyMlp = moe(config, shared=shared_width(config), router_bias=router_bias)
    layers = [
        layer(attention, routed if sparse else dense(config), 2 * size)
        for sparse in sparse_layers(config, num_layers(config))
    ]
    return Architecture(
        layers=layers, mtp_params=mtp_params(config, layers[-1]), rotary_dim=config.whole("qk_rope_head_dim")
    )


def _v2(config: Config) -> Architecture:
    return _read(config, router_bias=False)


def _v3(config: Config) -> Architecture:
    """Read V3 and its heirs, whose router has a bias an expert that balances the load."""
    return _read(config, router_bias=True)


READERS = {
    "deepseek_v2": _v2,
    **dict.fromkeys(["deepseek_v3", "deepseek_v32", "kimi_k2", "glm_moe_dsa", "glm4_moe_lite"], _v3),
}
