"""When things break by themselves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

__all__ = ["strikes"]

_BLOCK = 256


def strikes(units: int, mtbf_s: float, draws: np.random.Generator) -> Iterator[tuple[float, int]]:
    """Yield for ever when one of *units* equal things breaks [s], and its number.

    Each breaks at a constant rate, once in *mtbf_s* [s] on average, so that the whole is a Poisson process with *units*
    times that rate. What is broken already may be struck again, which is for the caller to ignore.
    """
    at_s = 0.0
    while True:
        gaps_s = draws.standard_exponential(_BLOCK) * (mtbf_s / units)
        for gap_s, unit in zip(gaps_s.tolist(), draws.integers(units, size=_BLOCK).tolist(), strict=True):
            at_s += gap_s
            yield at_s, unit
