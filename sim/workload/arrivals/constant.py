"""Like clockwork."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from sim.workload.arrivals.base import OpenLoop, Rate
from sim.workload.traffic import Floats

__all__ = ["ConstantArrivals"]


class ConstantArrivals(OpenLoop):
    """Requests at equal distances, the first at once."""

    kind: Literal["constant"] = "constant"
    rate: Rate = Field(description="Rate [requests/s].")

    def times_s(self, count: int, seed: int, beside: Path) -> Floats:
        """Return *count* rising arrival times [s]."""
        return np.arange(count) / self.rate
