"""When the users of a closed loop have begun, and had a turn each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["first_turns_over_s"]

Floats = NDArray[np.float64]

_SETTLED = 2.0  # starts of a closed loop are over after this many times the ramp


def first_turns_over_s(slots_open_s: Floats | None, arrival_s: Floats) -> float:
    """Return when all slots, which open at *slots_open_s*, have had a request each [s]; 0 where there are none.

    Parameters
    ----------
    arrival_s
        Of all requests of the run [s], in any order.
    """
    if slots_open_s is None:
        return 0.0
    turn = np.sort(arrival_s)[: len(slots_open_s) + 1][-1]
    return max(_SETTLED * float(slots_open_s.max()), float(turn))
