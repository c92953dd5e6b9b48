"""The skew under which the published kernel tables were measured."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from sim.moe.expert_map import Floats
from sim.moe.popularity.base import Popularity

__all__ = ["PowerLaw", "inverted"]


class PowerLaw(Popularity):
    """Tokens of an expert between 1 and ``0.8 * tokens`` with a density of ``x ** -alpha`` (aiconfigurator's sampler).

    Its tail grows with the tokens of the batch, so one alpha fits one size of batch. aiconfigurator takes 1.01 for
    DeepSeek models, 1.2 for mixtures in general, and 0.6 under EPLB.
    """

    kind: Literal["power_law"] = "power_law"
    alpha: float = Field(1.01, ge=0, le=10, description="Exponent of the density; 1.01 for DeepSeek models.")
    tokens: int = Field(4096, ge=2, le=2**31, description="Tokens of the batch that the skew is of [tokens].")

    def draw(self, layers: int, experts: int, random: np.random.Generator) -> Floats:
        """Return the tokens of each expert by inversion of the bounded power law."""
        return inverted(random.random((layers, experts)), self.alpha, 1.0, 0.8 * self.tokens)


def inverted(quantile: Floats, alpha: float, low: float, high: float) -> Floats:
    """Return the values at *quantile* of a density of ``x ** -alpha`` between *low* and *high*, in its shape."""
    if abs(power := 1.0 - alpha) < 1e-9:
        return np.asarray(low * (high / low) ** quantile)
    return np.asarray(((high**power - low**power) * quantile + low**power) ** (1.0 / power))
