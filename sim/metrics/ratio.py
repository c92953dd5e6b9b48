"""Ratios of what was counted, of which there may have been none."""

from __future__ import annotations

import math

__all__ = ["ratio"]


def ratio(part: float, whole: float) -> float:
    """Return *part* over *whole*, `nan` where there is no whole."""
    return part / whole if whole else math.nan
