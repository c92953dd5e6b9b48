"""Inter-token latency: every gap of every answer, without listing the tokens.

Inside a stride the gaps of one sequence are an arithmetic progression, ``first_s + j * growth_s``. The mean
and the standard deviation of all gaps are exact, from closed-form sums. Percentiles come from a histogram
whose bins are 0.1 % wide; a bin answers with the mean of the gaps inside it, so a percentile is off by at
most 0.1 %, and exact where all gaps of a bin are equal. Gaps below a microsecond share the first bin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.metrics.latency import Distribution
from sim.metrics.ragged import ragged
from sim.metrics.rows import RequestRows, StrideRows

__all__ = ["GapHistogram", "gaps_between", "gaps_of", "unexplained_gap_share"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_BIN_WIDTH = math.log1p(1e-3)
_FLOOR_S = 1e-6


@dataclass(frozen=True, slots=True)
class Progressions:
    """Arithmetic progressions of gaps, one a row: ``first_s + j * growth_s``, ``j < length``, *weight* times.

    None shrinks.
    """

    first_s: Floats
    growth_s: Floats
    length: Ints
    weight: Ints

    @classmethod
    def in_strides(cls, strides: StrideRows) -> Progressions:
        """Collect the gaps that are single iterations.

        The first iteration of a stride is a gap only of the sequences that emitted when it began, any later one is
        a gap of every decode.
        """
        growth_s, length, steady = strides.growth_s, strides.iterations, strides.steady_gaps
        late = np.flatnonzero((strides.decodes > steady) & (length > 1))
        first_s: Floats = np.concatenate([strides.first_s, (strides.first_s + growth_s)[late]])
        growth_s = np.concatenate([growth_s, growth_s[late]])
        length = np.concatenate([length, length[late] - 1])
        smallest_s = first_s + np.minimum(growth_s, 0.0) * (length - 1)  # shrinking: read backwards
        weight = np.concatenate([steady, (strides.decodes - steady)[late]])
        return cls(smallest_s, np.abs(growth_s), length, weight)

    @classmethod
    def odd(cls, strides: StrideRows) -> Progressions:
        """Collect the gaps that are not, each a progression of length one."""
        gap_s = strides.odd_gaps_s
        return cls(gap_s, np.zeros_like(gap_s), np.ones(len(gap_s), dtype=np.int64), strides.odd_gap_counts)

    def where(self, chosen: NDArray[np.bool_]) -> Progressions:
        """Return the *chosen* ones."""
        return Progressions(*(column[chosen] for column in self._columns))

    def __add__(self, other: Progressions) -> Progressions:
        pairs = zip(self._columns, other._columns, strict=True)
        return Progressions(*(np.concatenate(pair) for pair in pairs))

    @property
    def _columns(self) -> tuple[NDArray[Any], ...]:
        return self.first_s, self.growth_s, self.length, self.weight

    @property
    def count(self) -> int:
        """How many gaps there are."""
        return int(np.dot(self.length, self.weight))

    @property
    def total_s(self) -> float:
        """Sum of all gaps [s]."""
        k = self.length
        return float(np.dot(self.weight, k * self.first_s + self.growth_s * (k * (k - 1) / 2)))

    def squares_s2(self, mean_s: float) -> float:
        """Return the squared distances of all gaps from *mean_s* [s^2]: sums of j and j^2 over each progression."""
        k, first, growth = self.length, self.first_s - mean_s, self.growth_s
        squares = k * first**2 + first * growth * (k * (k - 1)) + growth**2 * (k * (k - 1) * (2 * k - 1) / 6)
        return float(np.dot(self.weight, squares))


@dataclass(frozen=True, slots=True)
class GapHistogram(Distribution):
    """Gaps in bins of 0.1 %: how many up to the end of each occupied bin, and the mean of each bin [s]."""

    up_to: Ints
    bin_mean_s: Floats
    count: int
    mean_s: float
    std_s: float

    @classmethod
    def of(cls, strides: Sequence[StrideRows]) -> GapHistogram:
        """Fold the gaps of some *strides* after the other into bins."""
        counts, sums, count, total_s = np.empty(0), np.empty(0), 0, 0.0
        for gaps in map(_all_of, strides):
            place, number, seconds = _folded(gaps)
            counts, sums = _sum(counts, np.bincount(place, number)), _sum(sums, np.bincount(place, seconds))
            count, total_s = count + gaps.count, total_s + gaps.total_s
        if not count:
            return cls(np.empty(0, dtype=np.int64), np.empty(0), 0, math.nan, math.nan)
        occupied, mean_s = counts > 0, total_s / count
        squares_s2 = sum(gaps.squares_s2(mean_s) for gaps in map(_all_of, strides))
        return cls(
            up_to=np.cumsum(counts[occupied]).astype(np.int64),
            bin_mean_s=sums[occupied] / counts[occupied],
            count=count,
            mean_s=mean_s,
            std_s=math.sqrt(max(0.0, squares_s2 / count)),
        )

    def _at(self, rank: int) -> float:
        return float(self.bin_mean_s[np.searchsorted(self.up_to, rank, side="right")])

    def _within(self, bound_s: float) -> int:
        bins = int(np.searchsorted(self.bin_mean_s, bound_s, side="right"))
        return int(self.up_to[bins - 1]) if bins else 0


def gaps_of(strides: StrideRows) -> GapHistogram:
    """Return all gaps of a run."""
    return GapHistogram.of(strides.pieces())


def gaps_between(strides: StrideRows, from_s: float, to_s: float) -> GapHistogram:
    """Return the gaps of the strides that start in ``[from_s, to_s)``; odd ones have no time."""
    return GapHistogram.of(
        [piece.where((from_s <= piece.start_s) & (piece.start_s < to_s)) for piece in strides.pieces()]
    )


def unexplained_gap_share(requests: RequestRows, gaps: Distribution) -> float:
    """Return by how much the gaps miss the time between first and last tokens, as a share of the latter."""
    asked_s = float(np.nansum(requests.last_token_s - requests.first_token_s) + requests.discarded_s.sum())
    found_s = gaps.mean_s * gaps.count if gaps.count else 0.0
    return abs(found_s - asked_s) / asked_s if asked_s else float(found_s > 0)


def _all_of(strides: StrideRows) -> Progressions:
    gaps = Progressions.in_strides(strides) + Progressions.odd(strides)
    return gaps.where(gaps.weight > 0)


def _sum(some: Floats, others: NDArray[Any]) -> Floats:
    """Return the sums of two columns, of which one may be longer."""
    total = np.zeros(max(len(some), len(others)))
    total[: len(some)] += some
    total[: len(others)] += others
    return total


def _bin_of(time_s: Floats) -> Ints:
    with np.errstate(divide="ignore"):  # no time at all: log(0), below the floor like the rest of its bin
        exact = np.floor(np.log(time_s / _FLOOR_S) / _BIN_WIDTH)
    return np.maximum(exact, 0).astype(np.int64)


def _folded(gaps: Progressions) -> tuple[Ints, Floats, Floats]:
    """Return bins, how many gaps fall in them and their sums [s]; a bin can occur many times."""
    lowest = _bin_of(gaps.first_s)
    spanned = _bin_of(gaps.first_s + gaps.growth_s * (gaps.length - 1)) - lowest + 1
    sparse = gaps.length <= spanned
    parts = _one_by_one(gaps.where(sparse)), _bin_by_bin(gaps.where(~sparse), lowest[~sparse], spanned[~sparse])
    place, number, total_s = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return place, number, total_s


def _one_by_one(gaps: Progressions) -> tuple[Ints, Floats, Floats]:
    """Fold progressions that have fewer terms than bins."""
    row, j = ragged(gaps.length)
    gap_s = gaps.first_s[row] + j * gaps.growth_s[row]
    weight = gaps.weight[row].astype(np.float64)
    return _bin_of(gap_s), weight, weight * gap_s


def _bin_by_bin(gaps: Progressions, lowest: Ints, spanned: Ints) -> tuple[Ints, Floats, Floats]:
    """Fold progressions that have more terms than bins: a bin takes the terms between its edges."""
    row, step = ragged(spanned)
    first_s, growth_s, last = gaps.first_s[row], gaps.growth_s[row], step == spanned[row] - 1
    edge_s = _FLOOR_S * np.exp(_BIN_WIDTH * (lowest[row] + step + 1))
    with np.errstate(divide="ignore", invalid="ignore"):  # where nothing grows there is one bin, the last
        below_edge = np.where(last, gaps.length[row], np.ceil((edge_s - first_s) / growth_s))
    end = np.clip(below_edge, 0, gaps.length[row])
    begin = np.where(step == 0, 0.0, np.roll(end, 1))
    terms = end - begin
    weight = gaps.weight[row]
    total_s = terms * first_s + growth_s * terms * (begin + end - 1) / 2
    return lowest[row] + step, weight * terms, weight * total_s
