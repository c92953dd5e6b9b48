"""DeepSeek V4: a window and compressed memory in each layer, hyper-connections, hash-routed first layers."""

from __future__ import annotations

from sim.profiles.huggingface.blocks import Architecture, heads, hidden, layer, moe, num_layers
from sim.profiles.huggingface.config import Config
from sim.profiles.huggingface.families.deepseek import shared_width
from sim.profiles.layers import CompressedAttention, Indexer

__all__ = ["READERS"]

SPARSE_RATIO = 4
"""Layers that compress four tokens into one pick entries with an indexer; those that compress more read them all."""


def _read(config: Config) -> Architecture:
    """As transformers `modeling_deepseek_v4.py` builds it; `compress_ratios` has one entry more, for the MTP layer."""
    count, size, streams = num_layers(config), hidden(config), config.whole("hc_mult")
    ratios = config.wholes("compress_ratios", count)
    if ratios is None:
        config.fail("compress_ratios", "missing, and this architecture (deepseek_v4) needs it")
    mixing = 2 * ((2 + streams) * streams * (streams * size + 1) + 3)
    hashed = config.whole("num_hash_layers", default=0, least=0)
    layers = [
        layer(
            _attention(config, ratio or None),
            moe(config, shared=shared_width(config), router_bias=index >= hashed),
            2 * size + mixing,
        )
        for index, ratio in enumerate(ratios)
    ]
    head_mixing = streams * (streams * size + 1) + 1
    return Architecture(
        layers=layers, extra_params=size + head_mixing, rotary_dim=config.whole("qk_rope_head_dim"), local_rotary=True
    )


def _attention(config: Config, ratio: int | None) -> CompressedAttention:
    rank, width = config.whole("q_lora_rank"), config.whole("head_dim")
    sparse = ratio == SPARSE_RATIO
    compressor = 0 if ratio is None else _compressor(hidden(config), 2 * width if sparse else width, width, ratio)
    return CompressedAttention(
        heads=heads(config),
        head_dim=width,
        q_lora_rank=rank,
        o_lora_rank=config.whole("o_lora_rank"),
        o_groups=config.whole("o_groups"),
        window=config.whole("sliding_window"),
        ratio=ratio,
        indexer=_indexer(config, rank, SPARSE_RATIO) if sparse else None,
        extra_params=rank + width + heads(config) + compressor,
    )


def _compressor(size: int, inner: int, width: int, ratio: int) -> int:
    """Value and gate projection, a bias a position of the group, a norm."""
    return 2 * size * inner + ratio * inner + width


def _indexer(config: Config, rank: int, ratio: int) -> Indexer:
    """Return the indexer, which compresses its own keys, twice as wide inside, and weighs its heads."""
    count, width, size = config.whole("index_n_heads"), config.whole("index_head_dim"), hidden(config)
    params = rank * count * width + size * count + _compressor(size, 2 * width, width, ratio)
    return Indexer(heads=count, head_dim=width, top_k=config.whole("index_topk"), params=params)


READERS = {"deepseek_v4": _read}
