"""An imported benchmark run as a serving case, so that any tool's output can be validated and fitted to."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from calibration.cases.serving import ServingCase
from calibration.runs import LATENCIES, Run

__all__ = ["case_of_run", "with_assumptions"]

_RENAMED = {"version": "engine_version", "load": "load_type"}
_MS = {f"{name}_{statistic}_s" for name in LATENCIES for statistic in ("mean", "p50", "p90", "p99")}


def case_of_run(run: Run, number: int) -> ServingCase:
    """Return *run*, the *number*-th of its file, under the columns of a file of serving cases."""
    row = {field.name: getattr(run, field.name) for field in dataclasses.fields(run)}
    cells = {_RENAMED.get(name, name): _cell(value) for name, value in row.items() if _kept(name, value)}
    cells |= {f"{name.removesuffix('_s')}_ms": _cell(1e3 * row[name]) for name in _MS if row[name] is not None}
    cells.setdefault("case_id", f"{run.file}#{number}")
    if run.load == "offline":
        cells["load_value"] = "inf"
    if run.load == "rate" and run.inflight_cap is not None:
        cells["inflight_cap"] = _cell(run.inflight_cap)
    if run.dp_attention:
        cells["dp"] = "dpa"
    return ServingCase(cells)


def _kept(name: str, value: Any) -> bool:
    return value is not None and name not in _MS and name not in ("requests", "steps")


def _cell(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def with_assumptions(cases: Iterable[ServingCase], assumed: Mapping[str, str]) -> Iterator[ServingCase]:
    """Yield *cases* with their empty cells filled from *assumed*, such as an accelerator that no tool records."""
    for case in cases:
        blank = {name: value for name, value in assumed.items() if not case.text(name)}
        yield dataclasses.replace(case, row={**case.row, **blank}) if blank else case


