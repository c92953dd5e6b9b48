"""Detects timestamps that were rounded so coarsely that requests seem to come in batches."""

from __future__ import annotations

import numpy as np

from sim.workload.traffic import Floats

__all__ = ["tick_s"]

_TOLERANCE = 0.002  # of the tick: the Mooncake clock is off by 1 ms now and then
_ROUNDED_SHARE = 0.99
_SHORTEST_TICK_S = 0.05
_FEWEST_TICKS = 20
_SIMULTANEOUS_SHARE = 0.1


def tick_s(arrival_s: Floats) -> float:
    """Return the tick [s] to which the rising times *arrival_s* were rounded, or 0 if they were not.

    They were if practically all steps between different times are multiples of the most frequent step, which is at
    least 50 ms, if there are at least 20 of them, and if more than a tenth of the requests share their time with the
    one before (of the Mooncake conversation trace 90 %, at 3 s).
    """
    gaps_s = np.diff(arrival_s)
    steps_s = gaps_s[gaps_s > 0]
    if len(steps_s) < _FEWEST_TICKS or len(steps_s) > (1 - _SIMULTANEOUS_SHARE) * len(gaps_s):
        return 0.0
    lengths_s, counts = np.unique(np.round(steps_s, 6), return_counts=True)
    tick = float(lengths_s[np.argmax(counts)])
    multiples = steps_s / tick
    rounded = np.mean(np.abs(multiples - np.rint(multiples)) < _TOLERANCE)
    return tick if tick >= _SHORTEST_TICK_S and rounded >= _ROUNDED_SHARE else 0.0
