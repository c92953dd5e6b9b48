"""Intervals that hold what a real run would show: the sampling error and how far predictions were off before.

Where draws of the constants are simulated (`Spread`), each source is counted once:

* *constants*: what their standard errors make of the figure, from pairs of runs on the same traffic;
* *traffic*: what other requests of the same kind make of it, from the same runs;
* *model*: what is left of the errors of measured runs. Those runs were predicted with the same constants, so their
  errors hold the constants' as well: these are subtracted, as variances of logarithms, down to nought.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["ModelError", "Spread", "widest", "with_draws", "with_model_error"]

Interval = tuple[float, float]
_NORMAL = 1.6449  # 95 % quantile of the normal distribution
_FEWEST = 19
"""Draws from which order statistics reach the 5 % and 95 % quantiles."""


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


@dataclass(frozen=True, slots=True)
class Spread:
    """How far figures move when constants are drawn from their errors and requests anew.

    Attributes
    ----------
    constants
        How many constants were drawn.
    moved
        By key of a result, of each draw: the logarithm of its figure over that of the run itself.
    by_constants
        The same over a run on the draw's own requests with the constants as they are.
    """

    constants: int
    moved: Mapping[str, tuple[float, ...]]
    by_constants: Mapping[str, tuple[float, ...]]

    @property
    def draws(self) -> int:
        """How many there were."""
        return max(map(len, self.moved.values()), default=0)

    def statement(self, error: ModelError | None) -> str:
        """Say what the intervals hold, with the *error* of measured runs if that is known."""
        what = "constants" if self.constants > 1 else "constant"
        said = f"intervals: draws ({self.draws}) of {self.constants} {what}, each on other traffic"
        if error is None:
            return f"{said}; how far the model itself is off such runs is not known"
        return f"{said}, and what is left of the errors of measured runs; without draws, {error.statement}"

    def parts(self, error: ModelError | None) -> dict[str, dict[str, float]]:
        """Return by key the factor that each source alone would give, 90 %: ``constants``, ``traffic``, ``model``."""
        return {
            key: {
                "constants": math.exp(_NORMAL * _root_mean_square(by_constants)),
                "traffic": math.exp(_NORMAL * _root_mean_square(_differences(self.moved[key], by_constants))),
                "model": math.exp(self.rest(key, error)),
            }
            for key, by_constants in self.by_constants.items()
        }

    def rest(self, key: str, error: ModelError | None) -> float:
        """Return what the constants leave of the *error* of measured runs, as a logarithm."""
        known = math.log(error.factors.get(_latency(key), 1.0)) if error is not None else 0.0
        constants = _NORMAL * _root_mean_square(self.by_constants[key])
        return math.sqrt(max(known**2 - constants**2, 0.0))


def with_draws(spread: Spread, error: ModelError | None, values: Mapping[str, float]) -> dict[str, Interval]:
    """Return the interval of each of *values* that all draws have; it holds the value, seldom in the middle."""
    found = {}
    for key in (key for key in values if key in spread.moved):
        rest, (below, above) = spread.rest(key, error), _reach(spread.moved[key])
        found[key] = (values[key] * math.exp(-math.hypot(below, rest)), values[key] * math.exp(math.hypot(above, rest)))
    return found


def _reach(moved: Sequence[float]) -> tuple[float, float]:
    """Return how far down and up nine in ten draws go from nought.

    By order statistics, as conformal prediction takes them; fewer draws than resolve these count as normal ones about
    nought, of which a next one stays within Student's t of their root mean square.
    """
    count = len(moved)
    if count < _FEWEST:
        from scipy.special import stdtrit

        reach = float(stdtrit(count, 0.95)) * _root_mean_square(moved)
        return reach, reach
    ordered, place = sorted(moved), math.floor(0.05 * (count + 1)) - 1
    return max(-ordered[place], 0.0), max(ordered[count - 1 - place], 0.0)


def _root_mean_square(values: Sequence[float]) -> float:
    return math.sqrt(sum(value**2 for value in values) / len(values))


def _differences(first: Sequence[float], second: Sequence[float]) -> list[float]:
    return [one - other for one, other in zip(first, second, strict=True)]


def _latency(key: str) -> str:
    """Return ``ttft`` for ``mean_ttft_ms``, and ``throughput`` for a rate."""
    return "throughput" if key.endswith("throughput") else key.removesuffix("_ms").rpartition("_")[2]


def _half_width(value: float, interval: Interval | None) -> float:
    """Return how far the sampling interval reaches above *value*, as a logarithm; 0 without one."""
    return math.log(max(interval[1], value) / value) if interval is not None else 0.0
