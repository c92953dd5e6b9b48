"""``calibration validate [FILE...]``."""

from __future__ import annotations

import argparse
import sys

from calibration import report
from calibration.commands.selection import add_selection, selection_of
from calibration.validation.validate import validate
from sim.commands.processes import count_of
from sim.report.json import to_json

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to *parser*."""
    files = "or folders; missing: the measurements that come along"
    parser.add_argument("files", nargs="*", metavar="FILE", help=files)
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--limit", type=count_of("cases"), metavar="N", help="at most N cases of each file")
    add_selection(parser)


def run(options: argparse.Namespace) -> int:
    """Print the errors of all cases by group; with JSON every case, too."""
    selection = selection_of(options)
    result = validate(selection.files, options.limit, selection.where, selection.assumed)
    sys.stdout.write(to_json(result) + "\n" if options.format == "json" else report.validation(result))
    return 0
