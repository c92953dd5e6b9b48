"""What one engine iteration computes: all that a cost model may know."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

__all__ = ["Batch", "Blocked", "Chunk"]


class Blocked(IntEnum):
    """Why nobody else was admitted to an iteration."""

    NO = 0
    MAX_NUM_SEQS = 1
    KV_BLOCKS = 2
    TOKEN_BUDGET = 3
    BATCHING = 4  # a static batch runs or still fills


class Chunk(NamedTuple):
    """A piece of one prompt: *tokens* computed now, on *past* tokens whose KV is already there."""

    tokens: int
    past: int


@dataclass(slots=True)
class Batch:
    """The composition of one iteration.

    Attributes
    ----------
    chunks
        Prompt pieces, one for each sequence that prefills.
    decodes
        Sequences that compute *tokens_each* tokens each: one, or with speculative decoding a draft and the one before;
        their mean, which need not be whole, where some have no draft.
    decode_context_tokens
        Sum over the decodes of their tokens *after* this iteration, the new ones included.
    decode_window_tokens
        For each attention window of the model, in its order, the sum over the decodes of ``min(context, window)``.
    padding
        Finished rows that a static batch still carries: they cost as sequences and emit nothing.
    sampled
        Tokens whose successor is sampled: all of the decodes, and one of each chunk that ends its prompt.
    masks
        Of these, those of sequences with a grammar, each of which needs a mask.
    group_tokens
        Tokens that all attention ranks of the replica compute together; None: each as many as this one.
    whole
        Another attention rank computes too little for two halves that overlap, so no rank splits its batch.
    """

    chunks: tuple[Chunk, ...] = ()
    decodes: int = 0
    decode_context_tokens: int = 0
    decode_window_tokens: tuple[int, ...] = ()
    padding: int = 0
    sampled: float = 0
    masks: int = 0
    group_tokens: float | None = None
    tokens_each: float = 1
    whole: bool = False

    @property
    def prefill_tokens(self) -> int:
        """Prompt tokens computed in this iteration."""
        return sum([chunk.tokens for chunk in self.chunks])

    @property
    def tokens(self) -> float:
        """All tokens computed in this iteration (`num_scheduled_tokens` in vLLM)."""
        return self.prefill_tokens + self.decodes * self.tokens_each

    @property
    def sequences(self) -> int:
        """Sequences that take part, padding included."""
        return len(self.chunks) + self.decodes + self.padding

    @property
    def context_tokens(self) -> int:
        """Sum over the sequences that compute of their tokens after this iteration."""
        return self.decode_context_tokens + sum(chunk.past + chunk.tokens for chunk in self.chunks)
