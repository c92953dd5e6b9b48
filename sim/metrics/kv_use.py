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
    replica; *waste* is the share of the room of sequences' blocks that holds no token, on average over the tokens of
    answers; *prefix_hit_rate* is the part of the prompt tokens looked up that was cached.
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
        waste=_waste(requests, block_size),
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


def _waste(requests: RequestRows, block_size: Floats) -> float:
    """Return the share of the blocks that sequences hold that holds no token, on average over the tokens of answers.

    A sequence of n tokens holds ``ceil(n / block_size)`` blocks, so of one that grows token by token the sum over its
    lengths is a difference of `_rooms`; blocks that it shares with others count as its own.
    """
    answers = (requests.replica >= 0) & (requests.emitted_tokens > 1)
    size = np.where(answers, block_size[requests.replica], math.nan)
    answers &= np.isfinite(size)
    size, before = size[answers], requests.input_tokens[answers].astype(np.float64)
    after = before + requests.emitted_tokens[answers] - 1
    tokens = (after * (after + 1) - before * (before + 1)) / 2
    return 1 - ratio(float(tokens.sum()), float((_rooms(after, size) - _rooms(before, size)).sum()))


def _rooms(tokens: Floats, block_size: Floats) -> Floats:
    """Return the sum over n from 1 to *tokens* of the room of the blocks that n tokens fill or touch [tokens]."""
    full, rest = np.divmod(tokens, block_size)
    rooms: Floats = block_size * (block_size * full * (full + 1) / 2 + rest * (full + 1))
    return rooms
