"""Attention over the KV cache: decodes are linear in their context, prompt chunks are not."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sim.batch import Chunk
from sim.cost.accelerator import Rates
from sim.cost.operation import Demand, Work

__all__ = ["DecodeAttention", "PrefillAttention", "attended"]

_TILE_QUERIES = 128
"""Queries of one tile in FlashAttention kernels."""


@dataclass(frozen=True, slots=True)
class DecodeAttention:
    """One new token of each sequence over its context: ``tokens attended * seconds_per_token + launch``.

    Linear in the context, which is what gives decode iterations a closed form.

    Attributes
    ----------
    flops_per_token, bytes_per_token
        For one token attended, of one rank [FLOP, B].
    window
        Place of the layer's window among those of the model; None for attention over all tokens.
    """

    name: str
    repeats: int
    flops_per_token: float
    bytes_per_token: float
    rates: Rates
    window: int | None = None

    @property
    def seconds_per_token(self) -> float:
        """Time for one token attended [s]: its compute or its bytes, whichever is longer."""
        return max(self.flops_per_token / self.rates.flops_per_s, self.bytes_per_token / self.rates.bytes_per_s)

    def demand(self, work: Work) -> Demand:
        """Return what it asks for; nothing without decodes."""
        if not work.decodes:
            return Demand()
        attended_tokens = (
            work.decode_context_tokens if self.window is None else work.decode_window_tokens[self.window]
        )
        return Demand(
            compute_s=attended_tokens * self.flops_per_token / self.rates.flops_per_s,
            memory_s=attended_tokens * self.bytes_per_token / self.rates.bytes_per_s,
            launch_s=self.rates.launch_s,
            sharpness=math.inf,
        )


def attended(chunk: Chunk, window: int | None) -> float:
    """Return the query-key pairs of a chunk: each query sees its past, itself and no more than *window*."""
    tokens, past = chunk
    if window is None or past + tokens <= window:
        return tokens * (past + (tokens + 1) / 2)
    growing = max(0, window - past)  # queries that do not fill the window yet
    return growing * (past + (growing + 1) / 2) + (tokens - growing) * window


@dataclass(frozen=True, slots=True)
class PrefillAttention:
    """Prompt chunks over themselves and their past, all in one kernel.

    A p-norm of FLOPs and KV bytes; no less than the longest tile of 128 queries, *wave* times one processor's share of
    the rate (few short prompts cannot fill the accelerator).

    Attributes
    ----------
    flops_per_pair, bytes_per_token
        For one query-key pair over all heads of the rank [FLOP]; for one token of KV [B].
    tile_s_per_token
        Time of one tile of queries of one head over one key [s].
    """

    name: str
    repeats: int
    flops_per_pair: float
    bytes_per_token: float
    tile_s_per_token: float
    rates: Rates
    window: int | None = None

    @classmethod
    def of(
        cls,
        name: str,
        repeats: int,
        heads: int,
        width: int,
        kv_bytes: float,
        rates: Rates,
        wave: float,
        processors: int,
        window: int | None = None,
    ) -> PrefillAttention:
        """Return it for *heads* of the rank, whose key and value are *width* wide together."""
        tile_s = wave * 2.0 * width * _TILE_QUERIES * processors / rates.flops_per_s
        return cls(name, repeats, 2.0 * heads * width, kv_bytes, tile_s, rates, window)

    def demand(self, work: Work) -> Demand:
        """Return what it asks for; nothing without chunks."""
        if not work.chunks:
            return Demand()
        pairs = keys = 0.0
        longest = 0.0
        for chunk in work.chunks:
            own = attended(chunk, self.window)
            pairs += own
            keys += chunk.tokens + (chunk.past if self.window is None else min(chunk.past, self.window))
            longest = max(longest, own / max(chunk.tokens, _TILE_QUERIES))
        compute_s = pairs * self.flops_per_pair / self.rates.flops_per_s
        return Demand(
            compute_s=max(compute_s, longest * self.tile_s_per_token),
            memory_s=keys * self.bytes_per_token / self.rates.bytes_per_s,
            launch_s=self.rates.launch_s,
            sharpness=self.rates.sharpness,
        )
