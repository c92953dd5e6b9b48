"""``calibration import FILE...``."""

from __future__ import annotations

import argparse
import sys

from calibration import table
from calibration.commands.output import deliver, writable
from calibration.commands.selection import files_of
from calibration.importers import import_file
from calibration.suspicion import suspicions
from sim.errors import SimError

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to *parser*."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="or folders")
    parser.add_argument("--format", choices=("table", "json", "csv"), default="table")
    parser.add_argument("-o", "--output", metavar="FILE", help="write there instead of to the terminal")


def run(options: argparse.Namespace) -> int:
    """Print the runs of all files that can be read; a file that cannot be is a line on stderr and exit status 2."""
    if options.output is not None:
        writable(options.output)
    runs, status = [], 0
    for file in files_of(options.files):
        try:
            runs += [(run, suspicions(run)) for run in import_file(file)]
        except SimError as error:
            sys.stderr.write(f"error: {error}\n")
            status = error.exit_code
    show = {"table": table.as_table, "json": table.as_json, "csv": table.as_csv}[options.format]
    if runs:
        deliver(show(runs), options.output)
    return status
