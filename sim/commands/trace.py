"""``sim trace inspect|convert FILE``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sim.report.json import to_json
from sim.report.traces import as_json, as_table, convert, inspect
from sim.workload.traces import AUTO, all_adapters

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to *parser*."""
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")
    inspector = actions.add_parser("inspect", help="lengths, rate, burstiness, sessions and shared prefixes of a trace")
    inspector.add_argument("--format", choices=("table", "json"), default="table", help="how the summary is printed")
    inspector.set_defaults(action=_inspect)
    converter = actions.add_parser("convert", help="write a trace in the canonical form, one request a line")
    converter.add_argument("-o", "--output", metavar="FILE.jsonl", required=True, help="file to write")
    converter.set_defaults(action=_convert)
    for action in (inspector, converter):
        action.add_argument("trace", metavar="FILE", type=Path, help="CSV or JSON Lines, plain or gzip")
        action.add_argument(
            "--trace-format",
            choices=(AUTO, *sorted(all_adapters())),
            default=AUTO,
            help="instead of telling by content",
        )


def run(options: argparse.Namespace) -> int:
    """Do what was asked for."""
    options.action(options)
    return 0


def _inspect(options: argparse.Namespace) -> None:
    summary = inspect(options.trace, options.trace_format)
    if options.format == "json":
        print(to_json(as_json(summary)))
        return
    from rich.console import Console

    Console(highlight=False).print(as_table(summary))


def _convert(options: argparse.Namespace) -> None:
    count = convert(options.trace, Path(options.output), options.trace_format)
    print(f"{count:,} requests written to {options.output}", file=sys.stderr)
