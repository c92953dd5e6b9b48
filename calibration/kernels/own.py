"""The constants of one's own accelerator, from the rows that ``calibration microbench`` wrote."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pydantic import BaseModel

from calibration.cases.names import gpu_name
from calibration.cases.not_modelled import NotModelledError
from calibration.kernels import collective, problems
from calibration.kernels.fitting import fit
from calibration.kernels.measured import KernelRow, read
from calibration.kernels.problem import Free, Problem
from calibration.kernels.tables import Table
from calibration.kernels.writing import TABLES, lines_of, table_lines
from sim.errors import ProfileError, UserError
from sim.profiles.calibrated import Constant, ElementwiseConstants, Fit, HardwareCalibration
from sim.profiles.hardware import Hardware
from sim.profiles.library import load_calibrated_hardware, load_hardware

__all__ = ["OwnFit", "fit_kernels"]

_FEWEST = 8
"""Shapes below which an operation keeps the constants that it has."""
_SHAPES = {
    "gemm": {"m": "m", "n": "n", "k": "k"},
    "decode": {
        "batch": "batch_size", "context": "attended", "heads": "heads", "kv_heads": "kv_heads", "head_dim": "head_dim"
    },
    "prefill": {
        "batch": "batch_size", "context": "isl", "heads": "heads", "kv_heads": "kv_heads", "head_dim": "head_dim"
    },
    "experts": {"m": "num_tokens", "k": "hidden_size", "n": "inter_size", "top_k": "topk", "experts": "num_experts"},
    "all_reduce": {"bytes": "bytes"},
    "copy": {"bytes": "bytes"},
}  # fmt: skip
"""Column of a row to what the problems of `calibration.kernels` call it."""
_KEPT = {
    "decode": ("wide", "head_s", "walk_s", "ramp", "ramp_s"),
    "prefill": ("memory", "exponent", "edge", "wide", "resident_share", "resident_time"),
    "experts": ("depth", "expert_s", "spread_s", "routing_s"),
}
"""Constants that take more shapes than are timed."""
_ALL_ON_ONE: dict[str, float] = {"moe_tp_size": 1, "moe_ep_size": 1, "matrices": 3, "grouped": False}
_IMPLIED: dict[str, dict[str, float]] = {"prefill": {"window": 0}, "experts": _ALL_ON_ONE}


class OwnFit(NamedTuple):
    """A calibrated accelerator as YAML, and a line for each operation: name, shapes, held-out median error."""

    hardware: str
    yaml: str
    report: list[str]


def fit_kernels(path: Path) -> OwnFit:
    """Fit what was timed; others keep the constants that the accelerator has, or go on as its relative's.

    Raises
    ------
    UserError
        For rows of several accelerators, of one without a hardware profile, or too few of every operation.
    """
    rows = read(path)
    names = {row.gpu for row in rows}
    if len(names) != 1:
        raise UserError(f"rows of one accelerator are needed, not of {len(names)}", file=str(path))
    hardware = _hardware(names.pop())
    base = load_calibrated_hardware(hardware.name)
    digest, source = hashlib.sha256(path.read_bytes()).hexdigest(), f"{path.name}: {rows[0].source}"
    relative = None if base.transferred_from is None else load_calibrated_hardware(base.transferred_from)
    tables = {name: _own(base, relative, name) for name in TABLES}
    elementwise, report = base.elementwise, []
    for (operation, key), found in _grouped(rows).items():
        if len(found) < _FEWEST:
            report.append(f"{operation} {key}: {len(found)} shapes, {_FEWEST} are needed: left as it was")
            continue
        table = Table(_table(operation, found), source, digest, 0)
        try:
            if operation == "copy":
                constants = elementwise = _copy(hardware, table)
            else:
                constants = tables[operation][key] = fit(_problem(base, hardware, operation, key), table)
        except ProfileError as problem:  # such as ranks that the profile does not join
            report.append(f"{operation} {key}: {problem.message}: left as it was")
            continue
        report.append(f"{operation} {key}: {len(found)} shapes, median error held out {constants.fit.median_error:.1%}")
    if all(line.endswith("left as it was") for line in report):
        raise UserError("too few shapes of every operation", file=str(path))
    assert elementwise is not None  # `HardwareCalibration.resolve` has filled it
    return OwnFit(hardware.name, "".join(_yaml(hardware, source, relative, base, tables, elementwise)), report)


def _own(base: HardwareCalibration, relative: HardwareCalibration | None, table: str) -> dict[Any, Any]:
    """Return the constants of one table that are not those of the *relative*."""
    theirs = {} if relative is None else getattr(relative, table)
    return {key: constants for key, constants in getattr(base, table).items() if constants != theirs.get(key)}


def _hardware(cell: str) -> Hardware:
    try:
        return load_hardware(gpu_name(cell))
    except NotModelledError:
        raise UserError(
            f"no hardware profile for {cell!r}: write one (docs/extending.md) and name it with `microbench --gpu`"
        ) from None


def _grouped(rows: Sequence[KernelRow]) -> Mapping[tuple[str, str | int], list[KernelRow]]:
    groups: dict[tuple[str, str | int], list[KernelRow]] = defaultdict(list)
    for row in rows:
        if row.operation not in _SHAPES:
            raise UserError(f"operation {row.operation!r} is not one of {', '.join(_SHAPES)}")
        groups[row.operation, row.ranks if row.operation == "all_reduce" else row.dtype].append(row)
    return groups


def _table(operation: str, rows: Sequence[KernelRow]) -> pd.DataFrame:
    columns = {theirs: [getattr(row, ours) for row in rows] for ours, theirs in _SHAPES[operation].items()}
    shapes = pd.DataFrame(columns | {"seconds": [row.seconds for row in rows]})
    return shapes.assign(**_IMPLIED.get(operation, {}))


def _problem(base: HardwareCalibration, hardware: Hardware, operation: str, key: Any) -> Problem:
    """Return the problem of an operation; what quantising takes is not timed, and stays as it was."""
    if operation == "gemm":
        problem = problems.gemm(hardware, key)
        kept = base.gemm[key].quantise.value if key in base.gemm else 0.0
        return replace(problem, free={**problem.free, "quantise": Free(kept, kept, kept)})
    makers = {
        "decode": lambda: problems.decode(hardware, key, wide=False),
        "prefill": lambda: problems.prefill(hardware, key, wide=False),
        "experts": lambda: problems.experts(hardware, key, alpha=None, spread=False),
        "all_reduce": lambda: problems.all_reduce(hardware, key),
    }
    problem, table = makers[operation](), getattr(base, operation)
    return replace(problem, free={**problem.free, **_kept(table, operation, key)})


def _kept(table: Mapping[Any, BaseModel], operation: str, key: Any) -> Mapping[str, Free]:
    """Return what takes more shapes than are timed: it stays as known, of 16 bits where *key* has no constants."""
    if operation not in _KEPT:
        return {}
    known = table[key] if key in table else table["bf16"]
    values = {name: getattr(known, name).value for name in _KEPT[operation]}
    return {name: Free(value, value, value) for name, value in values.items()}


def _copy(hardware: Hardware, table: Table) -> ElementwiseConstants:
    """Fit the line of kernels that only move bytes; errors on each size by the others."""
    moved, seconds = (table.shapes[name].to_numpy(dtype=np.float64) for name in ("bytes", "seconds"))
    line = collective.line(moved, seconds)
    errors = []
    for left_out in range(len(moved)):
        kept = np.arange(len(moved)) != left_out
        by_others = collective.line(moved[kept], seconds[kept])
        errors.append(abs(by_others.at(moved[left_out]) / seconds[left_out] - 1))
    share = 1 / (line.byte_s * hardware.memory_bytes_per_s)
    return ElementwiseConstants(
        memory=Constant(value=min(share, 2.0), stderr=share * line.byte_error, bounds=(0.01, 2.0)),
        launch_s=Constant(
            value=min(line.launch_s, 1e-3), stderr=line.launch_s * line.launch_error, bounds=(1e-8, 1e-3)
        ),
        fit=Fit(
            source=table.source,
            sha256=table.sha256,
            rows=len(table),
            median_error=float(np.median(errors)),
            p90_error=float(np.quantile(errors, 0.9)),
        ),
    )


def _yaml(
    hardware: Hardware,
    source: str,
    relative: HardwareCalibration | None,
    base: HardwareCalibration,
    tables: Mapping[str, Any],
    elementwise: ElementwiseConstants,
) -> Iterator[str]:
    """Yield the lines of the profile; beside a *relative*, only what is not its."""
    yield f"# Written by `python -m calibration fit`: do not edit.\nname: {hardware.name}\n"
    if relative is not None:
        yield f"transferred_from: {relative.name}\nerror_factor: {base.error_factor / relative.error_factor:g}\n"
    yield f'sources:\n  all: "{source}; what has another source below, or is not here, was not timed"\n'
    for table in TABLES:
        if tables[table]:
            yield from table_lines(table, tables[table])
    if relative is None or elementwise != relative.elementwise:
        yield "elementwise:\n"
        yield from lines_of(elementwise, "  ")
