"""Intervals that hold what a real run would show: the sampling error and how far predictions were off before."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["ModelError", "widest", "with_model_error"]

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class ModelError:
    """Factors by latency name and ``throughput``: nine in ten measured runs were within prediction / f and times f.

    *statement* says what they were found from, and what makes this run different.
    """

    factors: Mapping[str, float]
    statement: str


def widest(errors: Sequence[ModelError]) -> ModelError:
    """Return the largest factor of any of *errors* for each name that all have."""
    names = set.intersection(*(set(error.factors) for error in errors))
    factors = {name: max(error.factors[name] for error in errors) for name in sorted(names)}
    return ModelError(factors, "; ".join(dict.fromkeys(error.statement for error in errors)))


def with_model_error(
    error: ModelError, values: Mapping[str, float], sampling: Mapping[str, Interval]
) -> dict[str, Interval]:
    """Return the interval of each of *values*, by the key of a result such as ``mean_ttft_ms``.

    The two errors are independent, so that the logarithms of their half widths add in quadrature.
    """
    return {
        key: (value / spread, value * spread)
        for key, value in values.items()
        if not key.startswith("std") and math.isfinite(value) and value > 0
        if (factor := error.factors.get(_latency(key))) is not None
        for spread in [math.exp(math.hypot(math.log(factor), _half_width(value, sampling.get(key))))]
    }


def _latency(key: str) -> str:
    """Return ``ttft`` for ``mean_ttft_ms``, and ``throughput`` for a rate."""
    return "throughput" if key.endswith("throughput") else key.removesuffix("_ms").rpartition("_")[2]


def _half_width(value: float, interval: Interval | None) -> float:
    """Return how far the sampling interval reaches above *value*, as a logarithm; 0 without one."""
    return math.log(max(interval[1], value) / value) if interval is not None else 0.0
