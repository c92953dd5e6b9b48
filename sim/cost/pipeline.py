"""Pipeline parallelism: stages of consecutive layers, and the microbatches that keep them busy.

Assumption: the engine keeps as many microbatches in flight as there are stages (vLLM's batch queue does), and
deals the sequences evenly. With fewer sequences than stages, a microbatch passes all stages one after the
other; with at least as many, all stages work, and every sequence comes round once in the time of the slowest
stage times the stages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from sim.batch import Batch, Chunk
from sim.cost.operation import Work

__all__ = ["ONE_STAGE", "Pipeline", "Rounds"]


class Rounds(NamedTuple):
    """How often one iteration takes the time of a microbatch: in all layers, in the head, between two stages.

    *share* is that of the batch's context that a microbatch has.
    """

    layers: float
    head: int
    transfers: int
    share: float


ONE_STAGE = Rounds(1.0, 1, 0, 1.0)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """*stages* that share *layers* as evenly as whole layers allow; the last one also holds the output head."""

    stages: int
    layers: int

    def split(self, batch: Batch) -> tuple[Work, Rounds]:
        """Return the fullest microbatch, and how often one iteration takes its time."""
        if self.stages == 1:
            return Work.of(batch), ONE_STAGE
        stages, parts = self.stages, max(1, min(self.stages, len(batch.chunks) + batch.decodes))
        if parts < stages:
            return _fullest(batch, parts), Rounds(1.0, 1, stages - 1, 1.0 / parts)
        slowest = -(-self.layers // stages) / self.layers
        return _fullest(batch, parts), Rounds(stages * slowest, stages, stages, 1.0 / parts)


def _fullest(batch: Batch, parts: int) -> Work:
    """Return the microbatch that computes most, when sequences are dealt out from the longest chunk on."""
    chunks = tuple(sorted(batch.chunks, key=_size, reverse=True)[::parts])
    decodes = -(-batch.decodes // parts)
    return Work(
        decodes * batch.tokens_each + sum(chunk.tokens for chunk in chunks),
        -(-batch.sampled // parts),
        len(chunks) + decodes,
        decodes,
        batch.decode_context_tokens / parts,
        tuple(tokens / parts for tokens in batch.decode_window_tokens),
        chunks,
    )


def _size(chunk: Chunk) -> tuple[int, int]:
    return chunk.tokens, chunk.past
