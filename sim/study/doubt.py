"""How sure to be: from the errors of the model to a slower machine that is still to keep the SLO.

Predictions are off by a lognormal factor of which nine in ten lie within 1/f and f. To keep the SLO with probability p,
all must go well on a machine that is slower by the p-quantile of that factor. Errors of the different latencies are
taken to come together, which is cautious.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

__all__ = ["Doubt", "NOMINAL", "deviates_of"]

_TWO_SIDED = NormalDist().inv_cdf(0.95)  # f is the half width of a 90 % interval


def deviates_of(confidence: float) -> float:
    """Return how many standard deviations are above the median to be right with that *confidence*."""
    return NormalDist().inv_cdf(confidence)


@dataclass(frozen=True, slots=True)
class Doubt:
    """A machine that differs from the model, at so many standard *deviates* of its errors.

    Everything is *slower* by a factor, and latencies, by name, are longer by *factors*.
    """

    deviates: float
    slower: float
    factors: Mapping[str, float]

    @classmethod
    def of(cls, factors: Mapping[str, float], deviates: float, noise: float = 0.0) -> Doubt:
        """Return the machine at a quantile of the errors.

        Parameters
        ----------
        factors
            By latency, as of a `Measured`; may be empty.
        deviates
            The quantile, in standard deviations; 0 is the model itself.
        noise
            Standard error of the logarithm of what was simulated.
        """
        if not deviates:
            return NOMINAL
        errors = {name: math.log(factor) / _TWO_SIDED for name, factor in factors.items()}
        speed = errors.get("tpot", 0.0)
        longer = {
            name: math.exp(deviates * math.hypot(max(error, speed), noise))
            for name, error in (errors or {"noise": 0.0}).items()
        }
        return cls(deviates, math.exp(deviates * math.hypot(speed, noise)), longer)

    def longer(self, latency: str) -> float:
        """Return the factor on a *latency* of the model at the same load."""
        return self.factors.get(latency, self.factors.get("noise", self.slower))


NOMINAL = Doubt(0.0, 1.0, {})
"""The model itself."""
