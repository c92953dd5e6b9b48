"""Files of measurements as cases, told apart by their first line."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from calibration.cases import memory, serving
from calibration.cases.columns import check_assumed, check_where
from calibration.cases.of_run import case_of_run, with_assumptions
from calibration.cases.serving import ServingCase, read_serving_cases
from calibration.kernels import measured
from calibration.reading import header_of
from calibration.runs import Run, Steps
from calibration.suspicion import suspicions
from sim.errors import UserError, did_you_mean

__all__ = ["check_filled", "check_selection", "kind_of", "nothing_matches", "serving_cases_of", "steps_of"]

_FEW = 5


def kind_of(path: Path) -> Literal["serving", "memory", "kernels", "runs"]:
    """Tell a file of serving cases, one of start-up logs, one of kernel times, and the output of a benchmark tool."""
    header = header_of(path)
    if set(memory.COLUMNS) <= set(header):
        return "memory"
    if set(measured.COLUMNS) <= set(header):
        return "kernels"
    return "serving" if set(serving.COLUMNS) <= set(header) else "runs"


def check_selection(paths: Sequence[Path], where: Mapping[str, str], assumed: Mapping[str, str]) -> None:
    """Raise `UserError` for a column that cases do not have; files in columns of our own may have further ones."""
    check_assumed(assumed)
    if where:
        check_where(where, {column for path in paths if kind_of(path) != "runs" for column in header_of(path)})


def serving_cases_of(
    path: Path, limit: int | None, where: Mapping[str, str], assumed: Mapping[str, str]
) -> Iterator[ServingCase]:
    """Yield the serving cases of a file, of whatever kind, that match *where*, at most *limit*.

    *assumed* fills cells that are empty, since benchmark tools do not record the accelerator, before they are matched.
    """
    found = (case for case in with_assumptions(_cases_of(path), assumed) if case.matches(where))
    yield from itertools.islice(found, limit)


def _cases_of(path: Path) -> Iterator[ServingCase]:
    if kind_of(path) == "serving":
        yield from read_serving_cases(path)
        return
    from calibration.importers import import_file

    yield from (_doubted(run, number) for number, run in enumerate(import_file(path)) if run.steps is None)


def _doubted(run: Run, number: int) -> ServingCase:
    """Return *run* as a case with what ``calibration import`` says of it."""
    return replace(case_of_run(run, number), doubts=tuple(suspicions(run)))


def steps_of(
    path: Path, where: Mapping[str, str], assumed: Mapping[str, str]
) -> Iterator[tuple[ServingCase, Steps]]:
    """Yield the step traces of a benchmark output with what ran, where that matches *where*."""
    if kind_of(path) != "runs":
        return
    from calibration.importers import import_file

    for number, run in enumerate(import_file(path)):
        if run.steps is not None:
            case = next(with_assumptions([case_of_run(run, number)], assumed))
            if case.matches(where):
                yield case, run.steps


def check_filled(cases: Sequence[ServingCase], assumed: Mapping[str, str]) -> None:
    """Raise `UserError` for what is assumed of cases that all say otherwise, so that it would change nothing."""
    for column, value in assumed.items():
        stated = sorted({case.text(column) for case in cases})
        if cases and value not in stated:
            shown = ", ".join(stated[:_FEW]) + (", ..." if len(stated) > _FEW else "")
            raise UserError(f"{column}={value} fills no cell, since all say their own: {shown}", file="--assume")


def nothing_matches(paths: Sequence[Path], where: Mapping[str, str], assumed: Mapping[str, str]) -> UserError:
    """Return the error of a *where* that leaves no case: the first condition that none meets, and what there is."""
    cases = [case for path in paths for case in serving_cases_of(path, None, {}, assumed)]
    for column, value in where.items():
        if not any(case.matches({column: value}) for case in cases):
            found = sorted({case.text(column.removesuffix("~")) for case in cases} - {""})
            there_is = f"; they have {', '.join(found[:_FEW])}" if 0 < len(found) <= _FEW else ""
            remedy = did_you_mean(value, found) or there_is
            return UserError(f"no case has {column}={value}{remedy}", file="--where")
    return UserError("no case meets all conditions", file="--where")
