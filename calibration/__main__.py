"""The command line: ``python -m calibration COMMAND``. Each command imports what it needs, so that help is instant."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from sim.errors import SimError, UserError

__all__ = ["main"]

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, or 2 for input that cannot be used."""
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except SimError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader, such as `head`, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(UserError.exit_code, f"error: {message} ({self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m calibration", description="Fit to measurements, and judge by them.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", parser_class=_Parser)
    _add_import(commands)
    _add_validate(commands)
    _add_fit(commands)
    return parser


def _add_import(commands: Any) -> None:
    command = commands.add_parser("import", help="read the output of benchmark tools, and flag what does not add up")
    command.add_argument("files", nargs="+", metavar="FILE")
    command.add_argument("--format", choices=("table", "json", "csv"), default="table")
    command.add_argument("-o", "--output", metavar="FILE", help="write there instead of to the terminal")
    command.set_defaults(run=_import)


def _import(options: argparse.Namespace) -> int:
    """Print the runs of all files that can be read; a file that cannot be is a line on stderr and exit status 2."""
    from calibration import table
    from calibration.importers import import_file
    from calibration.suspicion import suspicions

    runs, status = [], 0
    for file in options.files:
        try:
            runs += [(run, suspicions(run)) for run in import_file(file)]
        except SimError as error:
            print(f"error: {error}", file=sys.stderr)
            status = error.exit_code
    show = {"table": table.as_table, "json": table.as_json, "csv": table.as_csv}[options.format]
    if runs:
        _deliver(show(runs), options.output)
    return status


def _add_validate(commands: Any) -> None:
    command = commands.add_parser("validate", help="predict what was measured, and say how far off that is")
    command.add_argument("files", nargs="*", metavar="FILE", help="missing: the measurements that come along")
    command.add_argument("--format", choices=("table", "json"), default="table")
    command.add_argument("--limit", type=int, metavar="N", help="at most N cases of each file")
    _add_selection(command)
    command.set_defaults(run=_validate)


def _add_selection(command: argparse.ArgumentParser) -> None:
    command.add_argument("--where", action="append", default=[], metavar="COLUMN=VALUE", help="only these cases")
    command.add_argument(
        "--assume", action="append", default=[], metavar="COLUMN=VALUE", help="for cells that are empty, such as gpu"
    )


def _validate(options: argparse.Namespace) -> int:
    """Print the errors of all cases by group; with JSON every case, too."""
    from calibration import report
    from calibration.validate import validate
    from sim.report.json import to_json

    files, where, assumed = list(map(Path, options.files)), _pairs(options.where), _pairs(options.assume)
    result = validate(files, options.limit, where, assumed)
    sys.stdout.write(to_json(result) + "\n" if options.format == "json" else report.validation(result))
    return 0


def _add_fit(commands: Any) -> None:
    command = commands.add_parser("fit", help="fit the constants of an engine to serving runs")
    command.add_argument("files", nargs="+", metavar="FILE")
    command.add_argument("-o", "--output", metavar="FILE", help="calibrated profile to write; missing: only report")
    command.add_argument("--most", type=int, default=60, metavar="N", help="runs to fit to, drawn evenly (60)")
    _add_selection(command)
    command.set_defaults(run=_fit)


def _fit(options: argparse.Namespace) -> int:
    """Print what the runs say of the constants, how sure that is, and how well runs that were kept back are met."""
    from calibration import report
    from calibration.fit import fit

    files, where, assumed = list(map(Path, options.files)), _pairs(options.where), _pairs(options.assume)
    outcome = fit(files, where, assumed, options.most)
    sys.stdout.write(report.fit(outcome))
    if options.output is not None:
        _deliver(outcome.as_yaml(Path(options.output).stem), options.output)
        _deliver(report.fit_html(outcome), str(Path(options.output).with_suffix(".html")))
    return 0


def _pairs(assignments: Sequence[str]) -> dict[str, str]:
    """Return ``column=value`` texts as a mapping."""
    for assignment in assignments:
        if "=" not in assignment:
            raise UserError(f"{assignment!r} is not COLUMN=VALUE")
    return dict(assignment.split("=", 1) for assignment in assignments)


def _deliver(text: str, path: str | None) -> None:
    """Print *text*, or write it so that a reader of *path* sees all of it or what was there before."""
    if path is None:
        sys.stdout.write(text)
        return
    temporary = Path(path).with_name(f".{Path(path).name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except (OSError, ValueError) as problem:
        raise UserError(f"cannot write: {getattr(problem, 'strerror', None) or problem}", file=path) from None
    finally:
        temporary.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
