"""Lengths from measured quantiles."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from sim.profiles.workload import TokenQuantiles
from sim.workload.lengths.base import LengthPolicy, Lengths, whole_tokens
from sim.workload.streams import stream
from sim.workload.traffic import Floats, Ints

__all__ = ["QuantileLengths"]


class QuantileLengths(LengthPolicy):
    """Lengths drawn from tables of quantiles by linear interpolation of the inverse distribution.

    A rank correlation r between prompt and answer is made with a Gaussian copula: two standard normal variables with
    correlation ``2 sin(pi r / 6)`` have Spearman's correlation r (Kruskal 1958), and their ranks pick the lengths.
    """

    kind: Literal["quantiles"] = "quantiles"
    input_tokens: TokenQuantiles = Field(
        examples=[{"0": 1, "0.5": 500, "0.9": 2000, "1": 8000}],
        description="Prompt length: share of requests that are at most so long -> length [tokens], from 0 to 1.",
    )
    output_tokens: TokenQuantiles = Field(
        examples=[{"0": 1, "0.5": 150, "0.9": 500, "1": 2000}], description="Answer length, likewise."
    )
    rank_correlation: float = Field(0.0, gt=-1, lt=1, description="Spearman's correlation of prompt and answer.")

    def draw(self, count: int, seed: int, beside: Path) -> Lengths:
        """Return the lengths of *count* requests."""
        first = stream(seed, "input_tokens").standard_normal(count)
        second = stream(seed, "output_tokens").standard_normal(count)
        correlation = 2 * math.sin(math.pi / 6 * self.rank_correlation)
        second = correlation * first + math.sqrt(1 - correlation**2) * second
        return Lengths(_at(self.input_tokens, _shares(first)), _at(self.output_tokens, _shares(second)))


def _shares(normal: Floats) -> Floats:
    """Return the normal distribution function of *normal*; without scipy, whose import would take longer."""
    return 0.5 + 0.5 * np.fromiter(map(math.erf, (normal / math.sqrt(2)).tolist()), float, len(normal))


def _at(table: dict[float, float], shares: Floats) -> Ints:
    return whole_tokens(np.interp(shares, list(table), list(table.values())))
