"""What iterations of one composition take whatever the contexts of their decodes, computed once for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sim.batch import Batch, Chunk
from sim.cost.attending import Attending

if TYPE_CHECKING:
    from sim.cost.step import RooflineStep

__all__ = ["Composition", "Compositions"]

Parts = tuple[tuple[Chunk, ...], int, float, float]
"""Prompt chunks, decodes, tokens of each decode, and how many tokens' successors are sampled."""

_MOST = 2**14
"""Compositions that are remembered, those with prompts have no end: some 10 MB with one prompt each."""


class Composition(NamedTuple):
    """What an iteration takes but for the time of its decodes' context [s].

    Attributes
    ----------
    gpu_s
        As `RooflineStep.gpu_s` without the time of the context, which is that of *attending*.
    token_s
        What each token of the context takes, where that is all of it; else None.
    hidden_s, shown_s
        As `Host.seconds`, without masks.
    """

    gpu_s: float
    attending: Attending
    token_s: float | None
    hidden_s: float
    shown_s: float


class Compositions(dict[Parts, Composition]):
    """By the parts of a batch."""

    def __init__(self, step: RooflineStep) -> None:
        super().__init__()
        self._step, self._no_window = step, (0,) * len(step.windows)

    def __missing__(self, parts: Parts) -> Composition:
        step, (chunks, decodes, tokens_each, sampled) = self._step, parts
        batch = Batch(chunks, decodes, 0, self._no_window, sampled=sampled, tokens_each=tokens_each)
        gpu_s, attending = step.composed(batch)
        if len(self) == _MOST:
            self.clear()
        self[parts] = found = Composition(gpu_s, attending, attending.token_s, *step.host.seconds(batch))
        return found
