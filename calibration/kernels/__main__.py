"""``python -m calibration.kernels FOLDER``: fit all accelerators and write their calibrated profiles."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from calibration.kernels.fitting import fit
from calibration.kernels.systems import SYSTEMS, tasks
from sim.profiles.calibrated import Constant, Fit
from sim.profiles.library import load_calibrated_hardware, load_hardware

__all__ = ["main"]

_TABLES = ("gemm", "decode", "prefill", "latent_decode", "latent_prefill", "experts", "all_reduce")
_WORST_ERROR = 0.25
"""Median held-out error above which constants are not written: the table shows something else."""
_RELATIVE = "H100-SXM-80GB"
"""Whose latent attention serves where none could be fitted."""
_ELEMENTWISE = """elementwise:
  memory: {value: 0.8, bounds: [0.8, 0.8], status: fixed}
  launch_s: {value: 3.0e-06, bounds: [3.0e-06, 3.0e-06], status: fixed}
  fit: {source: "assumed: 80 % of the bandwidth and 3 us a kernel, as in the composed check of the tables"}
"""
_HEAD = """# Written by `python -m calibration.kernels`: do not edit.
name: {name}
sources:
  all: >-
    Fitted to the kernel tables of aiconfigurator-core 0.12.0 (NVIDIA, Apache-2.0); each fit names its table.
"""


def main(arguments: list[str] | None = None) -> int:
    """Fit, and write one YAML file for each accelerator; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m calibration.kernels", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder with gemm_*.csv.gz, attn_*.csv.gz, ...")
    parser.add_argument("-o", "--out", type=Path, default=Path("profiles/calibrated/hardware"))
    parser.add_argument("--only", choices=SYSTEMS, action="append", help="accelerator; default: all")
    parser.add_argument("--table", choices=_TABLES, action="append", help="fit only this one anew; default: all")
    options = parser.parse_args(arguments)
    anew = options.table or _TABLES
    for name in sorted(options.only or SYSTEMS, key=lambda name: name != _RELATIVE):
        path: Path = options.out / f"{name}.yaml"
        path.write_text(_HEAD.format(name=name) + "".join(_tables(options.folder, name, anew)), encoding="utf-8")
        sys.stderr.write(f"{path}\n")
    return 0


def _tables(folder: Path, name: str, anew: Collection[str]) -> Iterator[str]:
    """Yield the YAML of each table of constants of one accelerator; those not fitted *anew* as they are."""
    fitted: dict[str, dict[str | int, BaseModel]] = {
        table: getattr(load_calibrated_hardware(name), table) for table in _TABLES if table not in anew
    }
    for task in tasks(folder, load_hardware(name)):
        if task.table in anew:
            constants = fit(task.problem, task.measured)
            if constants.fit.median_error <= _WORST_ERROR:
                fitted.setdefault(task.table, {})[task.key] = constants
    for table in _TABLES:
        yield f"{table}:\n"
        rows: Mapping[str | int, BaseModel] = fitted.get(table) or _borrowed(table)
        yield from (line for key, constants in rows.items() for line in _lines(key, constants))
    yield _ELEMENTWISE


def _borrowed(table: str) -> dict[str | int, BaseModel]:
    """Return the constants of the relative, as fixed ones."""
    rows: dict[str, BaseModel] = getattr(load_calibrated_hardware(_RELATIVE), table)
    return {key: constants.model_copy(update=_fixed(constants)) for key, constants in rows.items()}


def _fixed(constants: BaseModel) -> dict[str, Any]:
    values = {name: getattr(constants, name) for name in type(constants).model_fields}
    kept = {
        name: Constant(value=value.value, bounds=(value.value, value.value), status="fixed")
        for name, value in values.items()
        if isinstance(value, Constant)
    }
    return {**kept, "fit": Fit(source=f"transferred from {_RELATIVE}: no table that could be fitted")}


def _lines(key: str | int, constants: BaseModel) -> Iterable[str]:
    yield f"  {key}:\n" if "@" not in str(key) else f'  "{key}":\n'
    for name in type(constants).model_fields:
        value = getattr(constants, name)
        if isinstance(value, Constant):
            low, high = value.bounds
            digits = ".0f" if name.endswith("_bytes") else ".4g"
            numbers = f"value: {value.value:{digits}}, stderr: {value.stderr:.2g}, bounds: [{low:g}, {high:g}]"
            yield f"    {name}: {{{numbers}, status: {value.status}}}\n"
        elif isinstance(value, Fit):
            yield from _fit_lines(value)


def _fit_lines(summary: Fit) -> Iterator[str]:
    yield f'    fit:\n      source: "{summary.source}"\n'
    if summary.sha256:
        errors = f"median_error: {summary.median_error:.4f}, p90_error: {summary.p90_error:.4f}"
        yield f"      sha256: {summary.sha256}\n"
        yield f"      rows: {summary.rows}\n      excluded: {summary.excluded}\n"
        yield from (f"      {pair}\n" for pair in errors.split(", "))


if __name__ == "__main__":
    sys.exit(main())
