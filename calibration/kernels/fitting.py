"""Least squares on the logarithm of the time, with errors on shapes that the fit did not see."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.kernels.problem import Problem
from calibration.kernels.tables import Table
from sim.profiles.calibrated import Fit

__all__ = ["FOLDS", "correlations", "errors", "fit", "untold"]

FOLDS = 5
"""Every shape is held out once, in one of these parts; in a small table by itself."""
_SMALL_TABLE = 40
_OUTLIER = 0.03
"""Relative residual from which soft-L1 counts linearly: close to a fit of the median."""
_STARTS = 2
_STEP = 1e-4
"""Share of a constant by which it is moved to see what that does."""
_LEAST = 0.1
"""Correlation below which two errors hardly go together."""
_TOLD = 0.5
"""Share of a constant that its standard error is at most, where shapes tell it."""

Floats = NDArray[np.float64]


def fit(problem: Problem, table: Table) -> Any:
    """Return the constants of *problem* with standard errors and held-out errors.

    The covariance is ``2 cost/(rows - constants) (J'J)^-1`` of the logarithms.
    """
    held_out = np.abs(_held_out(problem, table.shapes))
    values, deviations = _solve(problem, table.shapes)
    stderr = {name: min(values[name] * d, problem.free[name].high) for name, d in deviations.items()}
    summary = Fit(
        source=table.source,
        sha256=table.sha256,
        rows=len(table),
        excluded=table.excluded,
        median_error=float(np.median(held_out)),
        p90_error=float(np.quantile(held_out, 0.9)),
        correlations=correlations(problem, values, table.shapes),
        untold=untold(problem, values, stderr),
    )
    return problem.constants(values, summary, stderr)


def untold(problem: Problem, values: Mapping[str, float], stderr: Mapping[str, float]) -> tuple[str, ...]:
    """Return the constants of which the shapes say little."""
    return tuple(name for name in problem.free if stderr.get(name, 0.0) > _TOLD * values[name])


def correlations(problem: Problem, values: Mapping[str, float], shapes: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return how the errors of the logarithms of two constants go together, by the later one and the earlier one.

    From the slopes of the predicted logarithms, weighted as soft-L1 weights them at the end of a fit. Constants
    without a slope have none, such as sizes at which an algorithm changes.
    """
    names = [name for name, free in problem.free.items() if free.low < free.high]
    at_s = np.log(problem.predict(problem.constants(values), shapes))
    steps = {name: _STEP if values[name] * (1 + _STEP) < problem.free[name].high else -_STEP for name in names}
    slopes = np.array([
        (np.log(problem.predict(problem.constants({**values, name: values[name] * (1 + step)}), shapes)) - at_s) / step
        for name, step in steps.items()
    ])
    weights = 1 / np.sqrt(1 + ((at_s - np.log(shapes.seconds.to_numpy())) / _OUTLIER) ** 2)
    covariance = np.linalg.pinv((slopes * weights) @ slopes.T, hermitian=True)
    deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    known = [place for place, deviation in enumerate(deviations) if deviation > 0]
    found: dict[str, dict[str, float]] = {}
    for second, first in ((second, first) for second in known for first in known if first < second):
        value = float(covariance[second, first] / deviations[second] / deviations[first])
        if abs(value) >= _LEAST:
            found.setdefault(names[second], {})[names[first]] = round(max(-1.0, min(value, 1.0)), 2)
    return found


def errors(problem: Problem, constants: Any, shapes: pd.DataFrame) -> Floats:
    """Return predicted over measured, minus 1."""
    return np.asarray(problem.predict(constants, shapes) / shapes.seconds.to_numpy() - 1)


def _held_out(problem: Problem, shapes: pd.DataFrame) -> Floats:
    names = [name for name in shapes.columns if name != "seconds"]
    rows = list(shapes[names].itertuples(index=False, name=None))
    drawn = [zlib.crc32(repr(row).encode()) % FOLDS for row in rows]
    part = np.array(drawn if len(rows) > _SMALL_TABLE else range(len(rows)))
    found = np.zeros(len(shapes))
    for fold in set(part):
        values, _ = _solve(problem, shapes[part != fold])
        found[part == fold] = errors(problem, problem.constants(values), shapes[part == fold])
    return found


def _solve(problem: Problem, shapes: pd.DataFrame) -> tuple[dict[str, float], dict[str, float]]:
    """Return the best values, and the standard deviations of their logarithms."""
    from scipy.optimize import least_squares

    if problem.solve is not None:
        return problem.solve(shapes)
    names = [name for name, free in problem.free.items() if free.low < free.high]
    fixed = {name: free.start for name, free in problem.free.items() if name not in names}
    low, high = (np.log([getattr(problem.free[name], side) for name in names]) for side in ("low", "high"))
    log_s = np.log(shapes.seconds.to_numpy())

    def values(point: Floats) -> Mapping[str, float]:
        return fixed | dict(zip(names, np.exp(point).tolist(), strict=True))

    def residuals(point: Floats) -> Floats:
        predicted_s: Floats = problem.predict(problem.constants(values(point)), shapes)
        return np.asarray(np.log(predicted_s) - log_s)

    start = np.log([problem.free[name].start for name in names])
    random = np.random.default_rng(0)
    starts = [start, *(start + random.normal(0, 0.3, len(names)) for _ in range(_STARTS - 1))]
    solutions = [
        least_squares(
            residuals, np.clip(point, low + 1e-6, high - 1e-6), bounds=(low, high), loss="soft_l1", f_scale=_OUTLIER
        )
        for point in starts
    ]
    best = min(solutions, key=lambda solution: float(solution.cost))
    variance = 2 * best.cost / max(1, len(shapes) - len(names))
    slopes = np.asarray(best.jac, dtype=np.float64)
    covariance = np.linalg.pinv(slopes.T @ slopes) * variance
    deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return dict(values(best.x)), dict(zip(names, deviations.tolist(), strict=True))
