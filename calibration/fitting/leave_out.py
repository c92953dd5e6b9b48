"""How well constants carry over to a model whose runs were not fitted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial

from calibration.fitting.fitted import Fitted
from calibration.fitting.points import METRICS, Measured, predict
from calibration.validation.summary import error_statistics
from sim.profiles.calibrated_engine import EngineConstants

__all__ = ["Errors", "errors_with", "leave_one_model_out"]

Errors = dict[str, dict[str, float]]
"""Metric to statistics in per cent."""


def errors_with(points: Sequence[Measured], constants: EngineConstants) -> Errors:
    """Return the errors of *points* with *constants*, of latencies too that were not fitted beside others."""
    found: dict[str, list[float]] = defaultdict(list)
    for point, predicted in zip(points, predict([(point, constants) for point in points]), strict=True):
        measured = {metric: value for metric, value in point.case.measured.items() if metric in METRICS}
        for metric, value in (measured | point.measured).items():
            if metric in predicted:
                found[metric].append(100 * (predicted[metric] / value - 1))
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
