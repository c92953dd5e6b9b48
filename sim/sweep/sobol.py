"""A Sobol sequence: evenly spread in all axes together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

from pydantic import model_validator

from sim.sweep.sampled import Sampled

if TYPE_CHECKING:
    from scipy.stats.qmc import QMCEngine

__all__ = ["Sobol"]


class Sobol(Sampled):
    """A scrambled Sobol sequence, whose balance needs a power of two as *num_points*.

    Source: A. B. Owen, "Scrambling Sobol' and Niederreiter-Xing points", Journal of Complexity 14 (1998) 466-489.
    """

    kind: Literal["sobol"] = "sobol"

    @model_validator(mode="after")
    def _balanced(self) -> Self:
        if self.num_points & (self.num_points - 1):
            below = 1 << (self.num_points.bit_length() - 1)
            raise ValueError(f"num_points must be a power of two, {below} or {2 * below}, not {self.num_points}")
        return self

    def _engine(self, dimensions: int) -> QMCEngine:
        from scipy.stats.qmc import Sobol as Engine

        return Engine(dimensions, rng=self.design_seed)
