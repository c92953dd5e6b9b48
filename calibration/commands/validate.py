"""``calibration validate [FILE...]``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from calibration import report
from calibration.commands.selection import add_selection, selection_of
from calibration.validation.validate import validate
from sim.commands.processes import count_of
from sim.profiles.library import load_calibrated_engine
from sim.report.json import to_json

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to *parser*."""
    files = "or folders; missing: the measurements that come along"
    parser.add_argument("files", nargs="*", metavar="FILE", help=files)
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--limit", type=count_of("cases"), metavar="N", help="at most N cases of each file")
    constants = "constants that `fit` wrote; missing: those that come along"
    parser.add_argument("--calibration", metavar="FILE", help=constants)
    add_selection(parser)


def run(options: argparse.Namespace) -> int:
    """Print the errors of all cases by group; with JSON every case, too."""
    selection = selection_of(options)
    constants = None if options.calibration is None else str(Path(options.calibration).resolve())
    if constants is not None:
        load_calibrated_engine(constants)
    result = validate(selection.files, options.limit, selection.where, selection.assumed, constants)
    sys.stdout.write(to_json(result) + "\n" if options.format == "json" else report.validation(result))
    return 0
