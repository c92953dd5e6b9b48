"""``python -m calibration validate``: predictions against measurements, over any file of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from calibration.cases.of_files import check_filled, kind_of, nothing_matches, serving_cases_of, steps_of
from calibration.validation.memory import validate_memory
from calibration.validation.serving import validate_serving
from calibration.validation.steps import validate_steps
from calibration.validation.summary import summary_of_cases
from sim.errors import UserError

__all__ = ["SHIPPED", "validate"]

SHIPPED = Path(__file__).parents[1] / "measurements"
"""Measurements that come with the project, each row with its source."""


def validate(
    files: Sequence[Path],
    limit: int | None = None,
    where: Mapping[str, str] | None = None,
    assumed: Mapping[str, str] | None = None,
    calibration: str | None = None,
) -> dict[str, Any]:
    """Predict the cases of *files*, or of the shipped measurements if there are none, and compare.

    Parameters
    ----------
    limit
        Most cases of each file.
    where
        Column to value: only cases that have it.
    assumed
        Column to value: for cells that are empty.
    calibration
        Constants of an engine, see `EngineChoice`; missing: those that come along.

    Returns
    -------
    dict
        ``cases``, one entry a row, ``summary`` by group and metric, errors in per cent of the measured value, and
        ``cpu_s``, the processor time of the simulations.

    Raises
    ------
    TraceError
        A file that cannot be read, or that lacks a column.
    UserError
        Start-up logs beside other files: their metrics have nothing in common; or nothing that has *where*.
    """
    paths = list(files) or sorted(SHIPPED.glob("*.csv*"))
    where, assumed = where or {}, assumed or {}
    if logs := [path for path in paths if kind_of(path) == "memory"]:
        return _of_logs(logs[0], paths, limit, where, assumed)
    cases = [case for path in paths for case in serving_cases_of(path, limit, where, assumed)]
    traces = [trace for path in paths for trace in steps_of(path, where, assumed)]
    check_filled([*cases, *(case for case, _ in traces)], assumed)
    entries, cpu_s = validate_serving(cases, calibration)
    for case, steps in traces:
        entries += validate_steps(case, steps, calibration)
    if not entries and where:
        raise nothing_matches(paths, where, assumed)
    return {"cases": entries, "summary": summary_of_cases(entries), "cpu_s": cpu_s}


def _of_logs(
    path: Path, paths: Sequence[Path], limit: int | None, where: Mapping[str, str], assumed: Mapping[str, str]
) -> dict[str, Any]:
    if len(paths) > 1:
        raise UserError("start-up logs are compared by themselves, one file at a time", file=str(path))
    if assumed:
        raise UserError("start-up logs state all that is read of them", file="--assume")
    return validate_memory(path, limit, where)
