"""MiniMax M2 and M3: experts in all or most layers, norms on Q and K, in M3 a sparse-attention indexer."""

from __future__ import annotations

from sim.profiles.huggingface.blocks import (
    Architecture,
    dense,
    grouped,
    head_dim,
    heads,
    hidden,
    layer,
    moe,
    num_layers,
    sparse_layers,
)
from sim.profiles.huggingface.config import Config
from sim.profiles.layers import GroupedAttention, Indexer

__all__ = ["READERS"]


def _m2(config: Config) -> Architecture:
    """QK norms over all heads together; `intermediate_size` is that of one expert."""
    kv_heads = config.whole("num_key_value_heads")
    norms = (heads(config) + kv_heads) * head_dim(config) if config.flag("use_qk_norm", True) else 0
    experts = moe(config, "intermediate_size", router_bias=config.flag("use_routing_bias", True))
    one = layer(grouped(config, extra=norms), experts, 2 * hidden(config))
    return Architecture(layers=[one] * num_layers(config), notes=_mtp_note(config))


def _m3(config: Config) -> Architecture:
    """QK norms a head; sparse layers pick blocks of tokens by an indexer (transformers `MiniMaxM3VLIndexer`)."""
    count = num_layers(config)
    shared = config.whole("n_shared_experts", default=1, least=0) * config.whole(
        "shared_intermediate_size", default=0, least=0
    )
    experts = moe(config, "moe_intermediate_size", "intermediate_size", shared=shared, router_bias=True)
    layers = [
        layer(
            _m3_attention(config, indexed),
            experts if sparse else dense(config, "dense_intermediate_size"),
            2 * hidden(config),
        )
        for sparse, indexed in zip(sparse_layers(config, count), _indexed_layers(config, count), strict=True)
    ]
    return Architecture(layers=layers, notes=_mtp_note(config))


def _indexed_layers(config: Config, count: int) -> list[bool]:
    sparse = config.part("sparse_attention_config")
    if sparse is None or not sparse.flag("use_sparse_attention", True):
        return [False] * count
    return [bool(value) for value in sparse.wholes("sparse_attention_freq", count) or [1] * count]


def _m3_attention(config: Config, indexed: bool) -> GroupedAttention:
    gate, norms = config.flag("attention_output_gate", False), 2 * head_dim(config)
    return grouped(config, output_gate=gate, extra=norms, indexer=_indexer(config) if indexed else None)


def _indexer(config: Config) -> Indexer | None:
    sparse = config.part("sparse_attention_config")
    if sparse is None:
        return None
    count, width = sparse.whole("sparse_num_index_heads"), sparse.whole("sparse_index_dim")
    tokens = sparse.whole("sparse_topk_blocks") * sparse.whole("sparse_block_size")
    return Indexer(heads=count, head_dim=width, top_k=tokens, params=hidden(config) * (count + 1) * width + 2 * width)


def _mtp_note(config: Config) -> list[str]:
    return ["MTP modules of the checkpoint are not counted."] if config.has("num_mtp_modules") else []


READERS = {"minimax_m2": _m2, "minimax_m3": _m3}
