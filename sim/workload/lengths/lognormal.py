"""Lognormal lengths: most are short, a few are very long."""

from __future__ import annotations

import math
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from sim.workload.lengths.base import Distribution, SeparateLengths, whole_tokens
from sim.workload.traffic import Ints

__all__ = ["LognormalLengths", "LognormalTokens"]

_Z90 = 1.2815515655446004  # 90 % quantile of the standard normal distribution


class LognormalTokens(Distribution):
    """A lognormal length, given by its mean or median and by its spread or 90 % quantile."""

    mean: float | None = Field(None, ge=1, description="Mean before clipping [tokens]; this or `median`.")
    median: float | None = Field(None, ge=1, description="Median [tokens]; this or `mean`.")
    sigma: float | None = Field(None, ge=0, le=10, description="Standard deviation of ln(length); this or `p90`.")
    p90: float | None = Field(None, ge=1, description="90 % quantile [tokens], beside `median`.")
    low: int = Field(1, ge=1, description="Shorter draws become this long [tokens].")
    high: int | None = Field(None, ge=1, description="Longer draws become this long [tokens]; missing: no limit.")

    @model_validator(mode="after")
    def _determined(self) -> Self:
        if (self.mean is None) == (self.median is None):
            raise ValueError("give either mean or median")
        if (self.sigma is None) == (self.p90 is None):
            raise ValueError("give either sigma or p90")
        if self.p90 is not None and (self.median is None or self.p90 < self.median):
            raise ValueError(f"p90 ({self.p90:g}) needs a median that is not above it")
        if self.high is not None and self.high < self.low:
            raise ValueError(f"high ({self.high}) must not be below low ({self.low})")
        return self

    def draw(self, count: int, draws: np.random.Generator) -> Ints:
        """Return *count* lengths [tokens]."""
        lengths = self._median() * np.exp(self._sigma() * draws.standard_normal(count))
        return whole_tokens(lengths, self.low, self.high)

    def _sigma(self) -> float:
        if self.sigma is not None:
            return self.sigma
        assert self.p90 is not None
        return math.log(self.p90 / self._median()) / _Z90

    def _median(self) -> float:
        """Return the median; the mean is ``median * exp(sigma^2 / 2)``."""
        if self.median is not None:
            return self.median
        assert self.mean is not None
        return self.mean * math.exp(-(self._sigma() ** 2) / 2)


class LognormalLengths(SeparateLengths):
    """Lognormal lengths, for what-ifs; the published traces fit better to their quantile tables."""

    kind: Literal["lognormal"] = "lognormal"
    input_tokens: LognormalTokens = Field(examples=[{"mean": 1024, "sigma": 1.0}], description="Prompt length.")
    output_tokens: LognormalTokens = Field(examples=[{"mean": 256, "sigma": 1.0}], description="Answer length.")
