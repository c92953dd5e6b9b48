"""Rows that fill a batch up to the next one that is captured as a CUDA graph."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace

from sim.cost.operation import Work

__all__ = ["GraphPadding"]


@dataclass(frozen=True, slots=True)
class GraphPadding:
    """A graph replays one batch only, so a smaller one runs at the next captured size.

    The rows added pass the products, norms and collectives of the layers. Attention reads nothing for them: their
    length is 0 or 1. Batches beyond the largest size run as they are.

    Attributes
    ----------
    sizes
        Captured batches, ascending.
    of_sequences
        A size counts sequences, each with as many tokens as it computes; else tokens.
    prompts
        Batches with prompts are padded, too.
    experts
        The rows added are routed to experts as all others; else they are masked.
    head
        They pass the output head; else it takes only what is sampled.
    """

    sizes: tuple[int, ...]
    of_sequences: bool = False
    prompts: bool = False
    experts: bool = True
    head: bool = False

    def padded(self, work: Work) -> Work:
        """Return *work* with the rows that the graph adds."""
        if work.chunks and not self.prompts:
            return work
        counted = work.decodes if self.of_sequences else work.tokens
        if not counted or counted > self.sizes[-1]:
            return work
        size = self.sizes[bisect_left(self.sizes, counted)]
        if size == counted:
            return work
        tokens = size * (work.tokens / work.decodes) if self.of_sequences else size
        return replace(work, tokens=tokens, sampled=max(tokens, work.sampled) if self.head else work.sampled)
