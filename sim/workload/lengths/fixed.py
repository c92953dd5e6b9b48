"""All requests alike."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from sim.workload.lengths.base import LengthPolicy, Lengths

__all__ = ["FixedLengths"]


class FixedLengths(LengthPolicy):
    """Every prompt and every answer has the same length."""

    kind: Literal["fixed"] = "fixed"
    input_tokens: int = Field(ge=1, examples=[1024], description="Prompt length [tokens].")
    output_tokens: int = Field(ge=1, examples=[256], description="Answer length [tokens].")

    def draw(self, count: int, seed: int, beside: Path) -> Lengths:
        """Return the same lengths *count* times."""
        return Lengths(np.full(count, self.input_tokens), np.full(count, self.output_tokens))
