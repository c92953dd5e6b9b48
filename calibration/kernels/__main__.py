"""``python -m calibration.kernels FOLDER``: fit all accelerators and write their calibrated profiles."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

from pydantic import BaseModel

from calibration.kernels.fitting import fit
from calibration.kernels.systems import SYSTEMS, tasks
from calibration.kernels.tables import PACKAGE
from calibration.kernels.writing import TABLES, fixed, table_lines
from sim.profiles.library import load_calibrated_hardware, load_hardware
from sim.wholefile import write_whole

__all__ = ["main"]

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
    Fitted to the kernel tables of {package}; each fit names its table.
"""


def main(arguments: list[str] | None = None) -> int:
    """Fit, and write one YAML file for each accelerator; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m calibration.kernels", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder with gemm_*.csv.gz, attn_*.csv.gz, ...")
    parser.add_argument("-o", "--out", type=Path, default=Path("profiles/calibrated/hardware"))
    parser.add_argument("--only", choices=SYSTEMS, action="append", help="accelerator; default: all")
    parser.add_argument("--table", choices=TABLES, action="append", help="fit only this one anew; default: all")
    options = parser.parse_args(arguments)
    anew = options.table or TABLES
    for name in sorted(options.only or SYSTEMS, key=lambda name: name != _RELATIVE):
        path: Path = options.out / f"{name}.yaml"
        head = _HEAD.format(name=name, package=PACKAGE)
        write_whole(path, (head + "".join(_tables(options.folder, name, anew))).encode())
        sys.stderr.write(f"{path}\n")
    return 0


def _tables(folder: Path, name: str, anew: Collection[str]) -> Iterator[str]:
    """Yield the YAML of each table of constants of one accelerator; those not fitted *anew* as they are."""
    fitted: dict[str, dict[str | int, BaseModel]] = {
        table: getattr(load_calibrated_hardware(name), table) for table in TABLES if table not in anew
    }
    for task in tasks(folder, load_hardware(name), anew):
        constants = fit(task.problem, task.measured)
        if constants.fit.median_error <= _WORST_ERROR:
            fitted.setdefault(task.table, {})[task.key] = constants
    for table in TABLES:
        yield from table_lines(table, fitted.get(table) or _borrowed(table))
    yield _ELEMENTWISE


def _borrowed(table: str) -> dict[str | int, BaseModel]:
    """Return the constants of the relative, as fixed ones."""
    rows: dict[str, BaseModel] = getattr(load_calibrated_hardware(_RELATIVE), table)
    source = f"transferred from {_RELATIVE}: no table that could be fitted"
    return {key: constants.model_copy(update=fixed(constants, source)) for key, constants in rows.items()}


if __name__ == "__main__":
    sys.exit(main())
