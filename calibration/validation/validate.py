"""``python -m calibration validate``: predictions against measurements, over any file of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from calibration.cases.of_files import kind_of, serving_cases_of, steps_of
from calibration.validation.memory import validate_memory
from calibration.validation.serving import validate_serving
from calibration.validation.steps import validate_steps
from calibration.validation.summary import summary_of_cases

__all__ = ["SHIPPED", "validate"]

SHIPPED = Path(__file__).parents[1] / "measurements"
"""Measurements that come with the project, each row with its source."""


def validate(
    files: Sequence[Path],
    limit: int | None = None,
    where: Mapping[str, str] | None = None,
    assumed: Mapping[str, str] | None = None,
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
        Memory cases beside serving cases: their metrics have nothing in common.
    """
    paths = list(files) or sorted(SHIPPED.glob("*.csv*"))
    kinds = {path: kind_of(path) for path in paths}
    if len(paths) == 1 and kinds[paths[0]] == "memory":
        return validate_memory(paths[0], limit, where)
    serving = [path for path in paths if kinds[path] != "memory"]
    cases = [case for path in serving for case in serving_cases_of(path, limit, where or {}, assumed or {})]
    entries, cpu_s = validate_serving(cases)
    for path in serving:
        for case, steps in steps_of(path, where or {}, assumed or {}):
            entries += validate_steps(case, steps)
    return {"cases": entries, "summary": summary_of_cases(entries), "cpu_s": cpu_s}
