"""An imported benchmark run as a serving case, so that any tool's output can be validated and fitted to."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from calibration.cases.columns import ARRAYS, column_of, is_path
from calibration.cases.serving import ServingCase
from calibration.runs import Run

__all__ = ["case_of_run", "with_assumptions"]


def case_of_run(run: Run, number: int) -> ServingCase:
    """Return *run*, the *number*-th of its file, under the columns of a file of serving cases."""
    row = {field.name: getattr(run, field.name) for field in dataclasses.fields(run)}
    known = {name: value for name, value in row.items() if value is not None and name not in ARRAYS}
    cells = {(column := column_of(name)): _cell(column, value) for name, value in known.items()}
    cells.setdefault("case_id", f"{run.file}#{number}")
    if run.load == "offline":
        cells["load_value"] = "inf"
    if run.dp_attention:
        cells["dp"] = "dpa"
    return ServingCase(cells)


def _cell(column: str, value: Any) -> str:
    shown = 1e3 * value if column.endswith("_ms") else value
    return str(int(shown)) if isinstance(shown, float) and shown.is_integer() else str(shown)


def with_assumptions(cases: Iterable[ServingCase], assumed: Mapping[str, str]) -> Iterator[ServingCase]:
    """Yield *cases* with their empty cells filled from *assumed*, such as an accelerator that no tool records.

    A model that is a path on the server, as ``vllm serve /models/x`` makes tools write it, counts as empty.
    """
    for case in cases:
        blank = {name: value for name, value in assumed.items() if _says_nothing(name, case.text(name))}
        yield dataclasses.replace(case, row={**case.row, **blank}) if blank else case


def _says_nothing(name: str, cell: str) -> bool:
    return not cell or (name == "model" and is_path(cell))
