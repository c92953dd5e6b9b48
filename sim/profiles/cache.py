"""What a layer keeps of a sequence, entry by entry."""

from __future__ import annotations

from typing import NamedTuple

from sim.profiles.layers import AnyAttention, CompressedAttention, GroupedAttention, Indexer, LatentAttention
from sim.profiles.quantization import bytes_per_element

__all__ = ["KvCache", "caches_of", "indexer_bytes"]


class KvCache(NamedTuple):
    """Keys and values that one layer keeps.

    Attributes
    ----------
    elements
        Elements of one token, over all KV heads; a fraction where several tokens share an entry.
    heads
        KV heads that tensor parallelism can share out; a latent counts as one, so every rank keeps all of it.
    window
        Newest tokens that are kept; None: all.
    chunked
        The window is a fixed chunk of the text.
    """

    elements: float
    heads: int
    window: int | None = None
    chunked: bool = False

    def bytes_per_token(self, kv_dtype: str, tp: int = 1) -> float:
        """Return what one rank of *tp* keeps of one token; heads are replicated once there are fewer than ranks [B]."""
        return self.elements / self.heads * max(1.0, self.heads / tp) * bytes_per_element(kv_dtype)


def caches_of(attention: AnyAttention | None) -> tuple[KvCache, ...]:
    """Return the caches of one layer: none for linear, cross and reusing layers, two for compressed attention."""
    if isinstance(attention, GroupedAttention):
        if attention.cross or attention.reuses_kv:
            return ()
        elements = attention.kv_heads * (attention.head_dim + attention.v_head_dim)
        return (KvCache(elements, attention.kv_heads, attention.window, attention.chunked),)
    if isinstance(attention, LatentAttention):
        return (KvCache(attention.kv_lora_rank + attention.rope_head_dim, 1),)
    if isinstance(attention, CompressedAttention):
        recent = KvCache(attention.head_dim, 1, attention.window)
        return (recent,) if attention.ratio is None else (recent, KvCache(attention.head_dim / attention.ratio, 1))
    return ()


def indexer_bytes(attention: AnyAttention | None) -> float:
    """Return what a sparse-attention indexer keeps of one token: an fp8 key and one fp32 scale a 128 of it [B].

    vLLM, `DeepseekV32IndexerCache`: 132 bytes for a key of 128. Compressed attention keeps one key an entry.
    """
    indexer: Indexer | None = getattr(attention, "indexer", None)
    if indexer is None:
        return 0.0
    ratio = attention.ratio if isinstance(attention, CompressedAttention) and attention.ratio else 1
    return indexer.head_dim * (1 + 4 / 128) / ratio
