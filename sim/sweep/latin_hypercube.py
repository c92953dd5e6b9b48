"""A Latin hypercube: each axis evenly covered, whatever the number of axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sim.sweep.sampled import Sampled

if TYPE_CHECKING:
    from scipy.stats.qmc import QMCEngine

__all__ = ["LatinHypercube"]


class LatinHypercube(Sampled):
    """A Latin hypercube: each of *num_points* equal parts of every axis has one point.

    Source: M. D. McKay, R. J. Beckman and W. J. Conover, Technometrics 21 (1979) 239-245.
    """

    kind: Literal["latin_hypercube"] = "latin_hypercube"

    def _engine(self, dimensions: int) -> QMCEngine:
        from scipy.stats.qmc import LatinHypercube as Engine

        return Engine(dimensions, rng=self.design_seed)
