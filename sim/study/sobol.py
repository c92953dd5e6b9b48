"""Sobol indices: the share of the variance of an output that an input explains."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.errors import UserError

__all__ = ["SobolIndex", "sobol_indices"]

Floats = NDArray[np.float64]

_CONFIDENCE = 0.9


@dataclass(frozen=True, slots=True)
class SobolIndex:
    """Share of the variance of *output* that *path* explains alone (*first*) and with the others (*total*).

    Intervals are 90 %, from resampling of the points; estimates may lie outside of 0 to 1 where the points are few.
    """

    path: str
    output: str
    first: float
    first_interval: tuple[float, float]
    total: float
    total_interval: tuple[float, float]


def sobol_indices(
    function: Callable[[Floats], Floats], paths: Sequence[str], outputs: Sequence[str], points: int, seed: int
) -> list[SobolIndex]:
    """Return the indices of every path and output, by output.

    Source: A. Saltelli et al., Computer Physics Communications 181 (2010) 259-270, as ``scipy.stats.sobol_indices``.

    Parameters
    ----------
    function
        Takes shares of the ranges, paths x any number of points, and returns outputs x points.
    points
        Base sample, a power of two.

    Raises
    ------
    UserError
        An output is not a finite number somewhere.
    """
    from scipy.stats import sobol_indices as estimate
    from scipy.stats import uniform

    def checked(shares: Floats) -> Floats:
        values = function(shares)
        for name, row in zip(outputs, values, strict=True):
            if not np.isfinite(row).all():
                raise UserError(f"{name} is not known everywhere in the ranges, so its variance is not either")
        return values

    dists: list[Any] = [uniform(0, 1)] * len(paths)
    found = estimate(func=checked, n=points, dists=dists, rng=np.random.default_rng(seed))
    with warnings.catch_warnings(action="ignore"):  # of an input that changes nothing, every sample says the same
        spread = found.bootstrap(confidence_level=_CONFIDENCE)
    first, total = (np.atleast_2d(values) for values in (found.first_order, found.total_order))
    ends = [
        np.atleast_2d(side)
        for each in (spread.first_order, spread.total_order)
        for side in (each.confidence_interval.low, each.confidence_interval.high)
    ]
    ends = [np.where(np.isnan(end), value, end) for end, value in zip(ends, (first, first, total, total), strict=True)]
    return [
        SobolIndex(
            path,
            output,
            float(first[row, column]),
            (float(ends[0][row, column]), float(ends[1][row, column])),
            float(total[row, column]),
            (float(ends[2][row, column]), float(ends[3][row, column])),
        )
        for row, output in enumerate(outputs)
        for column, path in enumerate(paths)
    ]
