"""Predicted against measured iterations of an engine: what a cost model says without any queue around it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from calibration.case_names import gpu_of, model_name, version_of
from calibration.memory_cases import NotModelledError
from calibration.runs import Steps
from calibration.serving_cases import ServingCase, described
from sim.batch import Batch
from sim.cost import StepCost
from sim.errors import ConfigError
from sim.experiment import experiment_of
from sim.simulate import prepare
from sim.yamlfile import Document

__all__ = ["validate_steps"]

METRIC = "step_ms"
_ANY_LENGTHS = {"kind": "fixed", "input_tokens": 1, "output_tokens": 1}


def validate_steps(case: ServingCase, steps: Steps) -> Iterator[dict[str, Any]]:
    """Yield an entry for each exact iteration that decodes and prefills nothing.

    Iterations with prompts are left out: where engines schedule ahead, their times may belong to the one before.
    """
    decoding = (steps.prefill_tokens == 0) & (steps.decode_sequences > 0)
    exact = decoding if steps.exact is None else decoding & (steps.exact == 1)
    try:
        cost = _cost(case)
    except NotModelledError as problem:
        yield _entry(case, "", {}, {}, str(problem))
        return
    for index in np.flatnonzero(exact).tolist():
        decodes, context = round(steps.decode_sequences[index]), round(steps.kv_tokens[index])
        batch = Batch(decodes=decodes, decode_context_tokens=context, sampled=decodes)
        predicted_ms, measured_ms = 1e3 * cost.pace(batch).first_s, 1e3 * float(steps.step_s[index])
        yield _entry(case, f"/{index}", {METRIC: predicted_ms}, {METRIC: measured_ms}, None)


def _cost(case: ServingCase) -> StepCost:
    """Return the step cost of the deployment; its workload plays no part."""
    kind, version, _ = version_of(case, [])
    data: dict[str, Any] = {
        "model": model_name(case),
        "deployment": {"gpu": gpu_of(case), "parallelism": {"tp": case.whole("tp") or 1}},
        "engine": {"kind": kind, "version": version, "num_gpu_blocks_override": 1},
        "workload": {"arrivals": {"kind": "offline"}, "lengths": _ANY_LENGTHS},
    }
    return prepare(experiment_of(Document(data, f"case {case.name}", ConfigError, {}))).engine.cost


def _entry(
    case: ServingCase, place: str, predicted: dict[str, float], measured: dict[str, float], skipped: str | None
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
        "skipped": skipped,
    }
