"""Rows of different length, kept as two flat columns, so that numpy can work on all of them at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["ragged"]


def ragged(lengths: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, for ``sum(lengths)`` cells, the row that each belongs to and its place in that row.

    ``ragged([2, 0, 3])`` is ``[0, 0, 2, 2, 2], [0, 1, 0, 1, 2]``.
    """
    row = np.repeat(np.arange(len(lengths)), lengths)
    row_start = np.cumsum(lengths) - lengths
    return row, np.arange(len(row)) - row_start[row]
