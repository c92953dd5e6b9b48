"""Predicted against measured latencies and rates: the serving cases of ``python -m calibration validate``."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from calibration.cases.not_modelled import NotModelledError
from calibration.cases.overload import measured_overload, simulated_overload
from calibration.cases.serving import ServingCase, described, intervals, predictions
from calibration.experiment.of_case import prepared_to_fit
from sim.cost import StepCost
from sim.errors import InfeasibleError, UserError
from sim.simulate import ReadyPool

__all__ = ["Answer", "predict", "predict_all", "validate_serving"]

Answer = dict[str, Any]
"""What a simulated case gives: ``predicted``, ``interval``, ``assumed``, ``skipped`` (a reason or None), ``cpu_s``,
``load`` (how busy it was), ``overloaded`` (or None) and ``running`` (most requests at once)."""


def validate_serving(
    cases: Sequence[ServingCase], calibration: str | None = None
) -> tuple[list[dict[str, Any]], float]:
    """Simulate every case and compare with what was measured; return one entry a case, and the processor time [s]."""
    answers = predict_all(cases, calibration)
    entries = [_entry(case, answer) for case, answer in zip(cases, answers, strict=True)]
    return entries, sum({id(answer): answer["cpu_s"] for answer in answers}.values())


def predict_all(cases: Sequence[ServingCase], calibration: str | None = None) -> list[Answer]:
    """Simulate *cases* on all cores; rows that ask the same are simulated once."""
    from joblib import Parallel, delayed

    questions = {case.question: case for case in cases}
    if len(questions) < 2 * (os.cpu_count() or 1):
        found = [predict(case, calibration) for case in questions.values()]
    else:
        found = Parallel(n_jobs=-1, batch_size=8)(delayed(predict)(case, calibration) for case in questions.values())
    answers = dict(zip(questions, found, strict=True))
    return [answers[case.question] for case in cases]


def predict(case: ServingCase, calibration: str | None = None) -> Answer:
    """Simulate *case* with the constants of a *calibration*; one that is not modelled is skipped with the reason."""
    from sim.simulate import simulate
    from sim.simulate.uncertainty import load_of

    began_s = time.process_time()
    answer: Answer = {"predicted": {}, "interval": {}, "assumed": [], "skipped": None}
    try:
        prepared, pools = prepared_to_fit(case, calibration=calibration)
        pools = [_on_shared_cost(pool) for pool in pools]
        answer["assumed"] = prepared.assumed
        result = simulate(prepared.experiment, pools=pools, brief=True)
        answer |= {"predicted": predictions(result.summary), "interval": intervals(result.summary)}
        answer |= {"load": load_of(result.requests), "running": result.summary.max_concurrent_requests}
        answer["overloaded"] = simulated_overload(case, result)
    except NotModelledError as problem:
        answer["skipped"] = str(problem)
    except InfeasibleError as problem:
        answer["skipped"] = f"does not fit: {problem}"
    except UserError as problem:
        answer["skipped"] = problem.message
    return answer | {"cpu_s": time.process_time() - began_s}


_COSTS: dict[tuple[str, ...], StepCost] = {}
_MOST_COSTS = 64
_NO_COST = {"max_model_len", "scheduler", "gpu_memory_utilization", "block_size", "prefix_caching"}
"""What of an engine changes its batches, and not what one costs."""


def _on_shared_cost(pool: ReadyPool) -> ReadyPool:
    """Return *pool* on the step cost of the cases before it on the same deployment, which knows their times."""
    of = pool.experiment
    key = (
        of.model,
        of.deployment.model_dump_json(exclude={"replicas"}),
        of.engine.model_dump_json(exclude=_NO_COST),
        of.cost_model.model_dump_json(),
        str(of.moe),
    )
    if len(_COSTS) >= _MOST_COSTS and key not in _COSTS:
        _COSTS.pop(next(iter(_COSTS)))
    cost = _COSTS.setdefault(key, pool.setup.engine.cost)
    return replace(pool, setup=replace(pool.setup, engine=replace(pool.setup.engine, cost=cost)))


def _entry(case: ServingCase, answer: Answer) -> dict[str, Any]:
    measured, predicted = case.measured, answer["predicted"]
    errors = {
        metric: 100 * (predicted[metric] - value) / value for metric, value in measured.items() if metric in predicted
    }
    inside = {
        metric: answer["interval"][metric][0] <= value <= answer["interval"][metric][1]
        for metric, value in measured.items()
        if metric in answer["interval"]
    }
    return {
        "case_id": case.name,
        **described(case),
        "predicted": predicted,
        "measured": measured,
        "error_pct": errors,
        "interval": {metric: list(answer["interval"][metric]) for metric in inside},
        "inside": inside,
        "overload": {"measured": measured_overload(case), "simulated": answer.get("overloaded")},
        "assumed": answer["assumed"],
        "doubts": [asdict(doubt) for doubt in case.doubts],
        "skipped": answer["skipped"],
    }
