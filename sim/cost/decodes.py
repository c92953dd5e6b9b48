"""What iterations that only decode take, computed once for each number of decodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sim.batch import Batch

if TYPE_CHECKING:
    from sim.cost.step import RooflineStep

__all__ = ["Decodes", "Decoding"]


class Decoding(NamedTuple):
    """What an iteration of so many decodes, and nothing else, takes whatever their context [s].

    Attributes
    ----------
    gpu_s, context
        As `RooflineStep.gpu_s` without the time of the context.
    growth_s
        What the next iteration takes longer, with no decode below a window.
    hidden_s, shown_s
        As `Host.seconds`, without masks.
    """

    gpu_s: float
    context: float
    growth_s: float
    hidden_s: float
    shown_s: float


class Decodes(dict[int, Decoding]):
    """By the number of decodes; computed once for each."""

    def __init__(self, step: RooflineStep) -> None:
        super().__init__()
        self._step, self._no_window = step, (0,) * len(step.windows)

    def __missing__(self, decodes: int) -> Decoding:
        step, each = self._step, self._step.tokens_each
        batch = Batch(
            decodes=decodes, decode_window_tokens=self._no_window, sampled=decodes * each, tokens_each=each
        )
        gpu_s, context = step.composed_s(batch)
        growth_s = context * step.context_s(decodes, self._no_window)
        self[decodes] = found = Decoding(gpu_s, context, growth_s, *step.host.seconds(batch))
        return found
