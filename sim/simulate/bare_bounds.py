"""Objectives whose numbers were hardly meant in seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sim.experiment import Experiment
from sim.slo import SLO

__all__ = ["bare_bound_warnings"]

_LONGEST_S = {"ttft": 60.0, "tpot": 1.0, "itl": 1.0, "e2el": 3600.0}
"""Bounds above these were rather meant in milliseconds, if no unit is written."""


def bare_bound_warnings(experiment: Experiment) -> Iterator[str]:
    """Name every bound that is written as a bare number and is longer than anybody would wait."""
    data = experiment.document.data
    yield from _of("slo", experiment.slo, data.get("slo"))
    classes = (data.get("workload") or {}).get("classes") or ()
    for number, (each, written) in enumerate(zip(experiment.workload.classes, classes, strict=True)):
        yield from _of(f"workload.classes.{number}.slo", each.slo, written.get("slo"))


def _of(path: str, slo: SLO | None, written: Any) -> Iterator[str]:
    for clause in slo.clauses if slo is not None else ():
        bare = not isinstance((written or {}).get(clause.name), str)
        if bare and clause.bound_s > _LONGEST_S[clause.latency]:
            yield f"{path}.{clause.name}: {clause.bound_s:g} s; a number without a unit is seconds"
