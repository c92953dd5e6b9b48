"""Any length between two bounds, all equally likely."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from sim.workload.lengths.base import Distribution, SeparateLengths
from sim.workload.traffic import Ints

__all__ = ["UniformLengths", "UniformTokens"]


class UniformTokens(Distribution):
    """Whole numbers from *low* to *high*, both included."""

    low: int = Field(ge=1, examples=[64], description="Shortest [tokens].")
    high: int = Field(ge=1, examples=[1024], description="Longest [tokens].")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.high < self.low:
            raise ValueError(f"high ({self.high}) must not be below low ({self.low})")
        return self

    def draw(self, count: int, draws: np.random.Generator) -> Ints:
        """Return *count* lengths [tokens]."""
        return draws.integers(self.low, self.high, size=count, endpoint=True)


class UniformLengths(SeparateLengths):
    """Uniform lengths, as ``vllm bench serve --random-range-ratio`` draws them."""

    kind: Literal["uniform"] = "uniform"
    input_tokens: UniformTokens = Field(description="Bounds of the prompt length.")
    output_tokens: UniformTokens = Field(description="Bounds of the answer length.")
