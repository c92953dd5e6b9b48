"""The points that no other point beats, and which one beats each of the rest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["dominators"]


def dominators(points: Sequence[Sequence[float]]) -> list[int | None]:
    """Return for each of *points* the place of one that dominates it; None: it is on the front.

    Every coordinate is the better the larger it is. Point a dominates b where it is nowhere worse and somewhere better.
    Of several it is the one on the front that is better by the largest share of a coordinate, the first of equal ones.
    """
    table = np.asarray(points, dtype=float)
    if not len(table):
        return []
    nowhere_worse = np.all(table[:, None, :] >= table[None, :, :], axis=2)
    better = np.any(table[:, None, :] > table[None, :, :], axis=2)
    beats: NDArray[np.bool_] = np.logical_and(nowhere_worse, better)  # [a, b]: a dominates b
    front = ~beats.any(axis=0)
    found: list[int | None] = []
    for place in range(len(table)):
        rivals = np.flatnonzero(beats[:, place] & front)
        if not len(rivals):
            found.append(None)
            continue
        gains = np.abs(table[rivals] - table[place]) / np.maximum(np.abs(table[place]), 1e-300)
        found.append(int(rivals[int(np.argmax(gains.max(axis=1)))]))
    return found
