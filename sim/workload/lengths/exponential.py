"""Memoryless lengths."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from sim.workload.lengths.base import LengthPolicy, Lengths
from sim.workload.streams import stream

__all__ = ["ExponentialLengths"]


class ExponentialLengths(LengthPolicy):
    """Exponential lengths in whole tokens.

    They are drawn from the geometric distribution on 1, 2, 3, ..., the memoryless one among whole numbers, so that the
    mean is exact and no rounding is needed.
    """

    kind: Literal["exponential"] = "exponential"
    input_tokens: float = Field(ge=1, examples=[1024], description="Mean prompt length [tokens].")
    output_tokens: float = Field(ge=1, examples=[256], description="Mean answer length [tokens].")

    def draw(self, count: int, seed: int, beside: Path) -> Lengths:
        """Return the lengths of *count* requests."""
        return Lengths(
            stream(seed, "input_tokens").geometric(1 / self.input_tokens, size=count),
            stream(seed, "output_tokens").geometric(1 / self.output_tokens, size=count),
        )
