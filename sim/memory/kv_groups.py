"""The KV cache of one rank as engines page it: groups of layers that share a block table.

Source of the rules: vLLM `v1/core/kv_cache_utils.py` and `v1/kv_cache_interface.py` (0.11 to 0.29).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sim.profiles.cache import caches_of, indexer_bytes
from sim.profiles.model import AnyAttention, LinearAttention

__all__ = ["KvGroup", "LayerCache", "kv_groups", "layer_caches"]

_ALIGNMENT_TOKENS = 16  # attention kernels read blocks of whole 16 tokens


@dataclass(frozen=True, slots=True)
class LayerCache:
    """One thing that a layer keeps on one rank.

    Attributes
    ----------
    token_bytes
        Keys and values of one token [B]; 0 for a state.
    window
        Tokens that the layer looks back on; None for all.
    chunked
        The window is a fixed chunk of the text.
    state_bytes
        Constant state of one sequence [B].
    """

    token_bytes: float
    window: int | None = None
    chunked: bool = False
    state_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class KvGroup:
    """Layers with one block table.

    Attributes
    ----------
    cache
        What each of its layers keeps; means over the layers where they differ in width only.
    layers
        Index in the model of each of its caches.
    block_size
        Tokens of one block.
    page_bytes
        Memory of one block in one layer [B].
    """

    cache: LayerCache
    layers: tuple[int, ...]
    block_size: int
    page_bytes: float

    def blocks(self, tokens: int, in_flight_tokens: int) -> int:
        """Count the blocks that a sequence of *tokens* holds at most, *in_flight_tokens* computed in one go."""
        if self.cache.state_bytes:
            return 1
        if self.cache.window is None:
            return -(-tokens // self.block_size)
        if self.cache.chunked:
            return -(-min(self.cache.window + in_flight_tokens, tokens) // self.block_size)
        # One block more, since a window need not begin at a block's edge.
        return -(-min(self.cache.window - 1 + in_flight_tokens, tokens) // self.block_size) + 1


def layer_caches(attention: AnyAttention | None, tp: int, kv_dtype: str) -> tuple[LayerCache, ...]:
    """Return what one layer keeps on each of *tp* ranks; nothing for a layer without a cache.

    KV heads are replicated where there are fewer heads than ranks; the latent of MLA is one head, so every rank
    holds all of it (DeepSeek-V2, arXiv:2405.04434, section 2.1).
    """
    if isinstance(attention, LinearAttention):
        return (LayerCache(0.0, state_bytes=attention.state_bytes / tp),)
    kept = [LayerCache(c.bytes_per_token(kv_dtype, tp), c.window, c.chunked) for c in caches_of(attention)]
    if index_bytes := indexer_bytes(attention):
        kept.append(LayerCache(index_bytes))
    return tuple(kept)


def kv_groups(
    caches: Sequence[tuple[LayerCache, ...]],
    block_size: int,
    *,
    hybrid: bool = True,
    padding_ratio: float = 1.25,
) -> tuple[KvGroup, ...]:
    """Group the caches of a model's layers by what they keep.

    Parameters
    ----------
    caches
        One entry a layer.
    hybrid
        Windows and states have block tables of their own; else every window counts as full attention.
    padding_ratio
        Groups take the size of the most common kind of layer if it is below this multiple of the rarest.
    """
    kept = [(index, cache) for index, layer in enumerate(caches) for cache in layer]
    if not hybrid:
        kept = [(index, replace(cache, window=None, chunked=False)) for index, cache in kept]
    if not kept:
        return ()
    if len({(cache.window, cache.chunked, bool(cache.state_bytes)) for _, cache in kept}) == 1:
        return (_uniform(kept, block_size),)
    kinds = defaultdict(list)
    for index, cache in kept:
        kinds[cache].append(index)
    return _paged(kinds, block_size, padding_ratio)


def _uniform(kept: list[tuple[int, LayerCache]], block_size: int) -> KvGroup:
    """Make one group: layers of one kind share a table even where their widths differ."""
    token_bytes = math.fsum(cache.token_bytes for _, cache in kept) / len(kept)
    state_bytes = math.fsum(cache.state_bytes for _, cache in kept) / len(kept)
    cache = replace(kept[0][1], token_bytes=token_bytes, state_bytes=state_bytes)
    return KvGroup(cache, tuple(index for index, _ in kept), block_size, token_bytes * block_size + state_bytes)


def _paged(kinds: dict[LayerCache, list[int]], block_size: int, padding_ratio: float) -> tuple[KvGroup, ...]:
    """Make groups of equal pages: narrow layers take more tokens a block, large states larger blocks for all."""
    sizes = [len(layers) for layers in kinds.values()]
    group_size = max(sizes) if max(sizes) < min(sizes) * padding_ratio else min(sizes)
    block_size = _block_beside_states(kinds, block_size)
    page_bytes = max(max(kind.token_bytes * block_size, kind.state_bytes) for kind in kinds)
    groups = []
    for kind, layers in kinds.items():
        scale = page_bytes / (kind.token_bytes * block_size) if kind.token_bytes else 1.0
        # A page that is no multiple of the layer's own is padded instead.
        block = block_size * int(scale) if scale == int(scale) else block_size
        count = -(-len(layers) // group_size)
        groups += [KvGroup(kind, tuple(layers[i::count]), block, page_bytes) for i in range(count)]
    return tuple(groups)


def _block_beside_states(kinds: dict[LayerCache, list[int]], block_size: int) -> int:
    """Return the tokens of an attention block whose page is at least as large as the largest state."""
    state_bytes = max(kind.state_bytes for kind in kinds)
    token_bytes = max(kind.token_bytes for kind in kinds)
    if not state_bytes or not token_bytes:
        return block_size
    aligned = math.ceil(state_bytes / (token_bytes * _ALIGNMENT_TOKENS)) * _ALIGNMENT_TOKENS
    return max(block_size, aligned)


def stage_block_bytes(groups: Sequence[KvGroup], layers: range) -> float:
    """Return what one block of the pool costs on the stage that computes *layers* [B].

    All groups draw on one pool, so a block costs its page in as many layers as the largest group has there.
    """
    most = max((Counter(index in layers for index in group.layers)[True] for group in groups), default=0)
    return most * groups[0].page_bytes if groups else 0.0
