"""Popularity that changes: with what is in a batch, and with time."""

from __future__ import annotations

import math

import numpy as np
from pydantic import Field

from sim.moe.expert_map import Floats
from sim.section import Section

__all__ = ["Drift"]


class Drift(Section):
    """Lognormal factors on the long-run popularity of every expert.

    What lasts (topic, language, customer) is what rebalancing can follow; what is in one batch, nobody can.
    """

    batch_sigma: float = Field(0.0, ge=0, le=5, description="Spread of the factors that each iteration draws anew.")
    slow_sigma: float = Field(0.0, ge=0, le=5, description="Spread of the factors that last.")
    slow_steps: float = Field(
        100_000.0, gt=0, description="Iterations after which 1/e of the slow factors' correlation is left."
    )

    def fresh(self, shape: tuple[int, ...], random: np.random.Generator) -> Floats:
        """Return the logarithms of slow factors of some moment."""
        return random.normal(0.0, self.slow_sigma, shape)

    def later(self, slow: Floats, steps: float, random: np.random.Generator) -> Floats:
        """Return what becomes of the logarithms *slow* after *steps* iterations (Ornstein-Uhlenbeck)."""
        kept = math.exp(-steps / self.slow_steps)
        drifted: Floats = kept * slow + math.sqrt(1.0 - kept**2) * self.fresh(slow.shape, random)
        return drifted

    def batch(self, slow: Floats, random: np.random.Generator) -> Floats:
        """Return the factors of one iteration, given the logarithms of the slow ones."""
        factors: Floats = np.exp(slow + random.normal(0.0, self.batch_sigma, slow.shape))
        return factors
