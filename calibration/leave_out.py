"""How well constants carry over to a model whose runs were not fitted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from calibration.fit_constants import Fitted, Measured, log_errors
from calibration.summary_of_cases import error_statistics
from sim.profiles.calibrated_engine import EngineConstants

__all__ = ["Errors", "errors_with", "leave_one_model_out"]

Errors = dict[str, dict[str, float]]
"""Metric to statistics in per cent."""


def errors_with(points: Sequence[Measured], constants: EngineConstants) -> Errors:
    """Return the errors of *points* with *constants*."""
    found: dict[str, list[float]] = defaultdict(list)
    for _, errors in log_errors(points, constants):
        for metric, error in errors.items():
            found[metric].append(100 * float(np.expm1(error)))
    return {metric: error_statistics(errors) for metric, errors in found.items()}


def leave_one_model_out(fitted: Fitted) -> Iterator[tuple[str, Errors]]:
    """Yield each model with its errors by constants that the other models give; one Gauss-Newton step a model."""
    by_model: dict[str, list[Measured]] = defaultdict(list)
    for point in fitted.problem.points:
        by_model[point.setup.model.name].append(point)
    if len(by_model) < 2:
        return
    for model, points in sorted(by_model.items()):
        yield model, errors_with(points, fitted.without(partial(_is_of, model)))


def _is_of(model: str, point: Measured) -> bool:
    return point.setup.model.name == model
