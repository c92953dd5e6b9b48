"""How the KV cache was used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.metrics.pools import PoolContext, of_replicas
from sim.metrics.ratio import ratio
from sim.metrics.rows import RequestRows, StrideRows

__all__ = ["KvUse", "kv_use_of"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class KvUse:
    """Shares of the KV pools of all replicas.

    *mean* and *peak* are of the blocks in use, the one over time and all replicas that served, the other of any
    replica; *waste* is the share of the held blocks' room that holds no token, *prefix_hit_rate* the part of the prompt
    tokens looked up that was cached.
    """

    prefix_hit_rate: float
    mean: float
    peak: float
    waste: float

    def as_dict(self) -> dict[str, float]:
        """Return it under its public keys."""
        return {
            "prefix_hit_rate": self.prefix_hit_rate,
            "kv_utilization_mean": self.mean,
            "kv_utilization_peak": self.peak,
            "kv_waste": self.waste,
        }


def kv_use_of(
    pools: Sequence[PoolContext], requests: RequestRows, strides: StrideRows, duration_s: float
) -> KvUse:
    """Return how a run of *duration_s* [s] used the KV cache."""
    block_size = of_replicas(pools, lambda pool: pool.block_size)
    kv_blocks = of_replicas(pools, lambda pool: pool.kv_blocks)
    pieces = strides.pieces()
    held = sum(_held(piece, block_size[piece.replica]) for piece in pieces)
    room = sum(pool.kv_blocks * pool.serving(duration_s) for pool in pools)
    return KvUse(
        prefix_hit_rate=_prefix_hit_rate(requests),
        mean=ratio(held, duration_s * room),
        peak=max(_peak(piece, kv_blocks) for piece in pieces),
        waste=_waste(pieces, block_size),
    )


def _prefix_hit_rate(requests: RequestRows) -> float:
    """Divide cached tokens by the prompt tokens looked up; a preempted request looks its own up again."""
    admitted = ~np.isnan(requests.admitted_s)
    looked_up = (requests.input_tokens * (1 + requests.preemptions))[admitted].sum()
    return ratio(float(requests.cached_tokens.sum()), float(looked_up))


def _held(strides: StrideRows, block_size: Floats) -> float:
    """Return the blocks in use, over time [s]."""
    return float(np.dot(_mean_blocks(strides, block_size), strides.duration_s))


def _mean_blocks(strides: StrideRows, block_size: Floats) -> Floats:
    """Average the blocks in use over each stride: each iteration before the last held *decodes* tokens less."""
    return strides.kv_blocks - strides.decodes * (strides.iterations - 1) / (2 * block_size)


def _peak(strides: StrideRows, kv_blocks: Floats) -> float:
    """Return the largest share in use of any replica's pool."""
    return float((strides.kv_blocks / kv_blocks[strides.replica]).max(initial=0.0)) if kv_blocks.all() else math.nan


def _waste(pieces: Sequence[StrideRows], block_size: Floats) -> float:
    """Return the share of the held blocks' room that holds no token, over the time of iterations that only decode.

    Blocks that several requests share count once and their tokens for each of them, which can hide all of it.
    """
    used = [_room_and_tokens(piece, block_size[piece.replica]) for piece in pieces]
    held, tokens = (sum(column) for column in zip(*used, strict=True))
    return max(1 - ratio(tokens, held), 0.0) if held else math.nan


def _room_and_tokens(strides: StrideRows, block_size: Floats) -> tuple[float, float]:
    """Return the room of the held blocks and the tokens in them, over the time of iterations that only decode."""
    alone = (strides.decodes > 0) & (strides.chunks == 0) & np.isfinite(block_size)
    duration_s = strides.duration_s[alone]
    tokens = strides.decode_context_tokens + strides.decodes * (strides.iterations - 1) / 2
    blocks = _mean_blocks(strides, block_size)[alone] * block_size[alone]
    return float(np.dot(blocks, duration_s)), float(np.dot(tokens[alone], duration_s))
