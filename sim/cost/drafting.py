"""What a drafting model computes in an iteration of the one that it drafts for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from sim.batch import Batch

if TYPE_CHECKING:
    from sim.cost.step import RooflineStep

__all__ = ["Drafting"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Drafting:
    """One pass over all tokens of the iteration, prompts included, and one a sequence for each further *position*.

    So vLLM does (`v1/spec_decode/eagle.py`, `propose`). What a prompt's end adds to the contexts of the further passes
    is left out.

    Attributes
    ----------
    windows
        For each attention window of the drafting model, its place among those of the other one.
    """

    step: RooflineStep
    positions: int
    windows: tuple[int, ...] = ()

    def gpu_s(self, batch: Batch) -> float:
        """Return the time of drafting after *batch* [s]."""
        first, later = self._passes(batch)
        seconds = self.step.gpu_s(first)
        if later.decodes and self.positions > 1:
            seconds += (self.positions - 1) * self.step.gpu_s(later)
        return seconds

    def more_s(
        self, batch: Batch, context_tokens: NDArray[np.int64], windows: Sequence[NDArray[np.int64]]
    ) -> NDArray[np.float64]:
        """Return what drafting takes longer than after *batch*, which only decodes, where contexts are these [s]."""
        drafted, _ = self._passes(batch)
        attending = self.step.attending(*self.step.pipeline.split(drafted))
        return self.positions * attending.more_s(drafted, context_tokens, self._own(windows))

    def limits(self, batch: Batch) -> dict[str, float]:
        """Return the seconds of `gpu_s` by what bounds the first pass."""
        seconds = self.gpu_s(batch)
        return {limit: share * seconds for limit, share in self.step.limits(self._passes(batch)[0]).items()}

    def _passes(self, batch: Batch) -> tuple[Batch, Batch]:
        ended = int(batch.sampled - batch.decodes * batch.tokens_each)
        sequences, windows = batch.decodes + ended, tuple(self._own(batch.decode_window_tokens))
        first = replace(batch, sampled=sequences, decode_window_tokens=windows, padding=0)
        context_tokens = batch.decode_context_tokens
        return first, Batch((), sequences, context_tokens, windows, sampled=sequences)

    def _own(self, windows: Sequence[T]) -> list[T]:
        return [windows[place] for place in self.windows]
