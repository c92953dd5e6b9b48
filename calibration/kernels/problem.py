"""What a fit is given: constants with their bounds, and what they predict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BaseModel

from sim.profiles.calibrated import Constant, Fit

__all__ = ["Free", "Problem", "Seconds"]

Seconds = NDArray[np.float64]
_NO_FIT = Fit(source="being fitted")


@dataclass(frozen=True, slots=True)
class Free:
    """Start and range of one constant; a range of one value keeps it."""

    start: float
    low: float
    high: float

    def constant(self, value: float, stderr: float = 0.0) -> Constant:
        """Return it with a fitted value."""
        fixed = self.low == self.high
        kept = min(max(value, self.low), self.high)
        return Constant(value=kept, stderr=stderr, bounds=(self.low, self.high), status="fixed" if fixed else "fitted")


@dataclass(frozen=True, slots=True)
class Problem:
    """A kind of constants, the range of each, and the seconds that they predict for a table of shapes."""

    kind: type[BaseModel]
    free: Mapping[str, Free]
    predict: Callable[[Any, pd.DataFrame], Seconds]
    solve: Callable[[pd.DataFrame], tuple[dict[str, float], dict[str, float]]] | None = None
    """A solution of its own, of values and their relative errors; None: least squares on the logarithm."""

    def constants(
        self, values: Mapping[str, float], fit: Fit = _NO_FIT, stderr: Mapping[str, float] | None = None
    ) -> Any:
        """Return the constants with these values."""
        errors = stderr or {}
        made = {name: free.constant(values[name], errors.get(name, 0.0)) for name, free in self.free.items()}
        return self.kind(**made, fit=fit)
