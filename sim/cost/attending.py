"""What attending takes in an iteration, by the tokens that its decodes attend to: lines that follow each other.

Each line begins where it is less than the one before, so that their time grows ever more slowly. A stride follows one
line; where kernels have one rate for all sizes, there is but one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sim.batch import Batch
    from sim.cost.attention import DecodeAttention

__all__ = ["Attending", "Curve", "Growth", "Line", "attending"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Line(NamedTuple):
    """``fixed_s + token_s * tokens`` [s], the time of no fewer tokens than *since*."""

    since: float
    fixed_s: float
    token_s: float


Curve = tuple[Line, ...]


class Growth(NamedTuple):
    """How much longer than the one before each of the next *iterations* takes [s]."""

    seconds: float
    iterations: float


@dataclass(frozen=True, slots=True)
class Attending:
    """The time of a number of sequences, by the sum of their contexts (*whole*) and of those within each window."""

    whole: Curve
    windows: tuple[Curve, ...] = ()

    @property
    def token_s(self) -> float | None:
        """What each token takes, where that is all: one line, and no window [s]."""
        return self.whole[0].token_s if len(self.whole) == 1 and not self.windows else None

    def seconds(self, tokens: float, window_tokens: Sequence[float]) -> float:
        """Return the time of attending to so many tokens in the layers without a window, and in those with each [s]."""
        line = _line(self.whole, tokens)
        seconds = line.fixed_s + line.token_s * tokens
        if self.windows:
            for curve, within in zip(self.windows, window_tokens, strict=True):
                line = _line(curve, within)
                seconds += line.fixed_s + line.token_s * within
        return seconds

    def more_s(self, batch: Batch, tokens: Integers, window_tokens: Sequence[Integers]) -> Floats:
        """Return what each of some iterations takes longer than *batch*, by their contexts [s]."""
        pairs = zip((self.whole, *self.windows), (tokens, *window_tokens), strict=True)
        least = [np.minimum.reduce([line.fixed_s + line.token_s * each for line in curve]) for curve, each in pairs]
        return np.asarray(np.add.reduce(least) - self.seconds(batch.decode_context_tokens, batch.decode_window_tokens))

    def growth(self, batch: Batch, growing: Sequence[int]) -> Growth:
        """Return how the time of *batch* grows when each decode attends to one more token an iteration.

        Of those within each window, *growing* do.
        """
        growth_s, iterations = 0.0, math.inf
        if not batch.decodes:
            return Growth(growth_s, iterations)
        contexts = (batch.decode_context_tokens, *batch.decode_window_tokens)
        curves = zip((self.whole, *self.windows), contexts, (batch.decodes, *growing), strict=True)
        for curve, tokens, more in curves:
            growth_s += _line(curve, tokens).token_s * more
            ends = [line.since for line in curve if line.since > tokens]
            if ends and more:
                iterations = min(iterations, math.floor((ends[0] - tokens) / more) + 1)
        return Growth(growth_s, iterations)


def _line(curve: Curve, tokens: float) -> Line:
    """Return the line that holds for so many tokens."""
    found = curve[0]
    for line in curve[1:]:
        if tokens < line.since:
            break
        found = line
    return found


def attending(
    operations: Sequence[DecodeAttention], windows: int, sequences: float, times: float, share: float
) -> Attending:
    """Return the time that *operations* take, run so many *times*, by contexts of which *sequences* have a *share*."""

    def curve(window: int | None) -> Curve:
        return tuple(_lines([each for each in operations if each.window == window], sequences, times, share))

    return Attending(curve(None), tuple(map(curve, range(windows))))


def _lines(operations: Sequence[DecodeAttention], sequences: float, times: float, share: float) -> Iterator[Line]:
    if not sequences:
        yield Line(0.0, 0.0, 0.0)
        return
    walk_s = sum(each.repeats * each.rates.walk_s for each in operations) / sequences
    for since in sorted({0.0, *(each.full_rate_since for each in operations)}):
        fixed_s, token_s = 0.0, walk_s
        for each in operations:
            full = each.full_rate_since <= since
            fixed_s += each.repeats * each.rates.ramp_s if full and each.rates.ramp else 0.0
            token_s += each.repeats * each.seconds_per_token * (1.0 if full else 1.0 + each.rates.ramp)
        yield Line(since / share, times * fixed_s, times * share * token_s)
