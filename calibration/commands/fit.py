"""``calibration fit FILE... -o profiles/calibrated/engines/NAME.yaml``; of kernel times, ``.../hardware/NAME.yaml``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from calibration import report
from calibration.cases.of_files import kind_of
from calibration.commands.output import deliver, writable
from calibration.commands.selection import Selection, add_selection, selection_of
from calibration.fitting.fit import fit
from sim.commands.processes import count_of
from sim.errors import UserError

__all__ = ["add_arguments", "run"]


_OF_PROFILES = (".yaml", ".yml")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to *parser*."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="or folders")
    parser.add_argument("-o", "--output", metavar="FILE", help="calibrated profile to write; missing: only report")
    most = "runs to fit to, drawn evenly (60)"
    parser.add_argument("--most", type=count_of("runs"), default=60, metavar="N", help=most)
    add_selection(parser)


def run(options: argparse.Namespace) -> int:
    """Print what the runs say of the constants, how sure that is, and how well runs that were kept back are met."""
    if options.output is not None:
        writable(options.output, _OF_PROFILES)
    selection = selection_of(options)
    if any(kind_of(file) == "kernels" for file in selection.files):
        return _run_kernels(selection, options.output)
    outcome = fit(selection.files, selection.where, selection.assumed, options.most)
    sys.stdout.write(report.fit(outcome))
    if options.output is not None:
        deliver(outcome.as_yaml(Path(options.output).stem), options.output)
        deliver(report.fit_html(outcome), str(Path(options.output).with_suffix(".html")))
        sys.stdout.write(f"\nuse it: --set engine.calibration={Path(options.output).resolve()}\n")
    return 0


def _run_kernels(selection: Selection, output: str | None) -> int:
    """Print how well the constants of each kernel meet shapes that they were not fitted to."""
    from calibration.kernels.own import fit_kernels

    if len(selection.files) > 1:
        raise UserError("kernel times are fitted by themselves, one file at a time", file=str(selection.files[1]))
    if selection.where or selection.assumed:
        raise UserError("kernel times take neither --where nor --assume", file=str(selection.files[0]))
    found = fit_kernels(selection.files[0])
    sys.stdout.write("\n".join((found.hardware, *found.report)) + "\n")
    if output is not None:
        deliver(found.yaml, output)
    return 0
