"""Attention over the KV cache: decodes are linear in their context, prompt chunks are not."""

from __future__ import annotations

from dataclasses import dataclass

from sim.batch import Chunk
from sim.cost.operation import Demand, Work
from sim.cost.rates import DecodeRates, PrefillRates

__all__ = ["TILE_QUERIES", "DecodeAttention", "PrefillAttention", "attended"]

TILE_QUERIES = 128
"""Queries of one tile in FlashAttention kernels."""


@dataclass(frozen=True, slots=True)
class DecodeAttention:
    """One new token of each sequence over its context.

    ``attended tokens * max(FLOPs/rate, bytes/bandwidth) + sequences * (KV heads * tile + heads * head) + launch``, the
    maximum softened, and the way along the mean sequence. Kernels that reach their full rate late lose *ramp* of the
    first term, until *ramp_s* is lost. So the time is made of one line in the context or two, which gives decode
    iterations a closed form.

    Attributes
    ----------
    flops_per_token, bytes_per_token
        For one token attended, of one rank [FLOP, B].
    kv_heads
        KV heads of the rank, each of which is a unit of work for each sequence; counted as often as it is read.
    window
        Place of the layer's window among those of the model; None for attention over all tokens.
    heads
        Query heads of the rank, times the tokens that a sequence computes.
    """

    name: str
    repeats: int
    flops_per_token: float
    bytes_per_token: float
    kv_heads: float
    rates: DecodeRates
    window: int | None = None
    heads: float = 0.0

    @property
    def seconds_per_token(self) -> float:
        """Time for one token attended [s]."""
        return self._attention(1.0).overlapped_s

    @property
    def seconds_per_sequence(self) -> float:
        """Time that each sequence takes whatever its context [s]."""
        return self.kv_heads * self.rates.tile_s + self.heads * self.rates.head_s

    @property
    def full_rate_since(self) -> float:
        """Tokens attended from which on the kernel reads at its full rate."""
        return self.rates.ramp_s / (self.rates.ramp * self.seconds_per_token) if self.rates.ramp else 0.0

    def demand(self, work: Work) -> Demand:
        """Return what it asks for."""
        everything = self.window is None
        attended_tokens = work.decode_context_tokens if everything else work.decode_window_tokens[self.window or 0]
        rates, read = self.rates, self._attention(attended_tokens)
        walk_s = rates.walk_s * attended_tokens / work.decodes
        fixed_s = rates.launch_s + work.decodes * self.seconds_per_sequence + walk_s
        lost_s = _lesser(rates.ramp * read.overlapped_s, rates.ramp_s)  # before the full rate is reached
        return read._replace(fixed_s=fixed_s + lost_s)

    def _attention(self, attended_tokens: float) -> Demand:
        return Demand(
            compute_s=attended_tokens * self.flops_per_token / self.rates.flops_per_s,
            memory_s=attended_tokens * self.bytes_per_token / self.rates.bytes_per_s,
            sharpness=8.0,
        )


def _lesser(first: float, second: float) -> float:
    """Return the lesser of two numbers, or of each pair of two arrays."""
    return (first + second - abs(first - second)) / 2


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

    The p-norm of three times, and what nothing hides:

    * compute: two products and an exponential a query-key pair, some of them in vain at the edges of what is seen, and
      the set-up of each tile of 128 queries of a head;
    * memory: keys and values of chunk and past once, queries and outputs once;
    * depth: the longest tile, walking along its keys on one processor (few short prompts cannot fill all);
    * fixed: the launch, and passes over the new keys and values to write them to the cache.

    Attributes
    ----------
    heads, width
        Query heads of the rank; width of a key and a value together.
    kv_bytes, new_kv_bytes
        One token of the cache, of the rank: as stored, and in the 16 bits it is made in [B].
    reach
        Tokens that a query sees at most; None: all.
    """

    name: str
    repeats: int
    heads: int
    width: int
    kv_bytes: float
    new_kv_bytes: float
    rates: PrefillRates
    reach: int | None = None

    def demand(self, work: Work) -> Demand:
        """Return what the chunks ask for together."""
        pairs = tokens = keys = tiles = longest = 0.0
        for chunk in work.chunks:
            rows = max(chunk.tokens, TILE_QUERIES)
            own = attended(chunk, self.reach) + rows * self._edges(chunk) * self.rates.edge
            pairs += own
            tokens += chunk.tokens
            tiles += rows / TILE_QUERIES
            keys += chunk.tokens + (chunk.past if self.reach is None else min(chunk.past, self.reach))
            longest = max(longest, own / rows)
        return self.demand_of(pairs, tokens, keys, tiles, longest)

    def _edges(self, chunk: Chunk) -> int:
        """Return the ends of what queries see that tiles do not meet: the diagonal, and where a window begins."""
        return 1 if self.reach is None or sum(chunk) <= self.reach else 2

    def demand_of(self, pairs: float, tokens: float, keys: float, tiles: float, longest: float) -> Demand:
        """Return what an iteration asks for, given its sums.

        Parameters
        ----------
        pairs, tokens, keys
            Query-key pairs that are computed, queries, and keys read [tokens].
        tiles, longest
            Tiles of 128 queries of one head; mean keys of a query in the longest of them [tokens].
        """
        rates, width = self.rates, self.width + self.rates.exponent
        moved_bytes = keys * self.kv_bytes + tokens * self.heads * self.width * 2.0
        return Demand(
            compute_s=pairs * 2.0 * self.heads * width / rates.flops_per_s
            + tiles * self.heads * rates.tile_s,
            memory_s=moved_bytes / rates.bytes_per_s,
            depth_s=longest * width * rates.depth_s,
            sharpness=rates.sharpness,
            fixed_s=rates.launch_s + tokens * self.new_kv_bytes * rates.write_s,
        )
