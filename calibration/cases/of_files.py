"""Files of measurements as cases, told apart by their first line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from calibration.cases import memory, serving
from calibration.cases.of_run import case_of_run, with_assumptions
from calibration.cases.serving import ServingCase, read_serving_cases
from calibration.kernels import measured
from calibration.reading import header_of
from calibration.runs import Run, Steps
from calibration.suspicion import suspicions

__all__ = ["kind_of", "serving_cases_of", "steps_of"]


def kind_of(path: Path) -> Literal["serving", "memory", "kernels", "runs"]:
    """Tell a file of serving cases, one of start-up logs, one of kernel times, and the output of a benchmark tool."""
    header = header_of(path)
    if set(memory.COLUMNS) <= set(header):
        return "memory"
    if set(measured.COLUMNS) <= set(header):
        return "kernels"
    return "serving" if set(serving.COLUMNS) <= set(header) else "runs"


def serving_cases_of(
    path: Path, limit: int | None, where: Mapping[str, str], assumed: Mapping[str, str]
) -> Iterator[ServingCase]:
    """Yield the serving cases of a file, of whatever kind, whose cells equal *where*, at most *limit*.

    *assumed* fills cells that are empty, since benchmark tools do not record the accelerator.
    """
    if kind_of(path) == "serving":
        yield from with_assumptions(read_serving_cases(path, limit, where), assumed)
        return
    from calibration.importers import import_file

    runs = (_doubted(run, number) for number, run in enumerate(import_file(path)) if run.steps is None)
    found = [case for case in with_assumptions(runs, assumed) if _matches(case, where)]
    yield from found[:limit]


def _doubted(run: Run, number: int) -> ServingCase:
    """Return *run* as a case with what ``calibration import`` says of it."""
    return replace(case_of_run(run, number), doubts=tuple(suspicions(run)))


def steps_of(
    path: Path, where: Mapping[str, str], assumed: Mapping[str, str]
) -> Iterator[tuple[ServingCase, Steps]]:
    """Yield the step traces of a benchmark output with what ran, where its cells equal *where*."""
    if kind_of(path) != "runs":
        return
    from calibration.importers import import_file

    for number, run in enumerate(import_file(path)):
        if run.steps is not None:
            case = next(with_assumptions([case_of_run(run, number)], assumed))
            if _matches(case, where):
                yield case, run.steps


def _matches(case: ServingCase, where: Mapping[str, str]) -> bool:
    return all(case.text(column) == value for column, value in where.items())
