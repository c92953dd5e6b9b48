"""A batch job."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from sim.workload.arrivals.base import DrawnArrivals, Schedule

__all__ = ["OfflineArrivals"]


class OfflineArrivals(DrawnArrivals):
    """All requests at once, at the start."""

    kind: Literal["offline"] = "offline"

    def schedule(self, count: int, seed: int, beside: Path) -> Schedule:
        """Return *count* arrivals at 0."""
        return Schedule(np.zeros(count))
