"""Predicted against measured iterations of an engine: what a cost model says without any queue around it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from calibration.cases.not_modelled import NotModelledError
from calibration.cases.serving import ServingCase, described
from calibration.cases.steps import METRIC, exact_decodes
from calibration.experiment.of_steps import experiment_of_steps
from calibration.runs import Steps
from sim.errors import SimError
from sim.simulate import prepare

__all__ = ["validate_steps"]


def validate_steps(case: ServingCase, steps: Steps, calibration: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield an entry for each of the `exact_decodes`."""
    try:
        prepared = experiment_of_steps(case, calibration)
        cost = prepare(prepared.experiment).engine.cost
    except (NotModelledError, SimError) as problem:
        yield _entry(case, "", {}, {}) | {"skipped": str(problem)}
        return
    for step in exact_decodes(steps):
        predicted_ms = 1e3 * cost.pace(step.batch).first_s
        entry = _entry(case, f"/{step.place}", {METRIC: predicted_ms}, {METRIC: step.measured_ms})
        yield entry | {"assumed": prepared.assumed}


def _entry(
    case: ServingCase, place: str, predicted: dict[str, float], measured: dict[str, float]
) -> dict[str, Any]:
    errors = {metric: 100 * (predicted[metric] / value - 1) for metric, value in measured.items()}
    return {
        "case_id": f"{case.name}{place}",
        **described(case),
        "predicted": predicted,
        "measured": measured,
        "error_pct": errors,
        "interval": {},
        "inside": {},
        "assumed": [],
        "skipped": None,
    }
