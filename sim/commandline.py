"""A command line of sub-commands, each of which is a file that is imported only when its command is called."""

from __future__ import annotations

import argparse
import importlib
import io
import keyword
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from sim.errors import SimError, UserError
from sim.garbage import modules_kept

__all__ = ["execute", "guarded"]

INTERRUPTED = 130


def execute(
    package: str, commands: Mapping[str, str], description: str, arguments: Sequence[str] | None = None
) -> int:
    """Run one command and return its exit status: 0, 2 for input that cannot be used, 3 for infeasible.

    Parameters
    ----------
    package
        Package whose ``commands`` hold a module for each command, with `add_arguments(parser)` and `run(options)`.
    commands
        Names of the commands and their lines of help; the module of a Python keyword has an underscore after it.
    arguments
        Missing: those of the process.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    _ready_stdout()
    options = argparse.Namespace()
    try:
        options = _options(package, commands, description, arguments)
        return guarded(lambda: options.run(options))
    except KeyboardInterrupt:
        sys.stderr.write(_stopped(options))
        return INTERRUPTED


def guarded(command: Callable[[], int]) -> int:
    """Return the exit status of *command*; whatever it fails of is one line on standard error."""
    try:
        status = command()
        sys.stdout.flush()
    except SimError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    except (BrokenPipeError, SystemExit):  # the reader, such as `head`, has had enough; rich makes the one the other
        _drop_stdout()
        return 0
    except OSError as error:  # of standard output, such as a full disk; of files, each reader tells its own
        sys.stderr.write(f"error: {error.filename or 'standard output'}: {error.strerror or error}\n")
        _drop_stdout()
        return UserError.exit_code
    except MemoryError:
        sys.stderr.write("error: this machine has too little memory for that\n")
        return UserError.exit_code
    return status


def _stopped(options: argparse.Namespace) -> str:
    """Return the line for somebody who has stopped a command: whether what it has done is kept for the next time."""
    kept = getattr(options, "no_cache", None) is False or getattr(options, "resume", False)
    line = "stopped; run the same again to go on\n" if kept else "stopped\n"
    return f"\r\x1b[K{line}" if sys.stderr.isatty() else line  # over what is left of a line of progress


def _ready_stdout() -> None:
    """Let every character be printed, as ``?`` where the encoding lacks it, and nothing fail where nobody listens."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - as long as the process lives
    elif isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _drop_stdout() -> None:
    """Let what is still buffered go nowhere, so that the interpreter ends without a further error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(UserError.exit_code, f"error: {message} (see {self.prog} --help)\n")


def _options(
    package: str, commands: Mapping[str, str], description: str, arguments: Sequence[str]
) -> argparse.Namespace:
    called = arguments[0] if arguments else ""
    options, unknown = _parser(package, commands, description, called).parse_known_args(arguments)
    if unknown:  # argparse itself would point at the help of the program, not at the command's
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return options


def _parser(package: str, commands: Mapping[str, str], description: str, called: str) -> argparse.ArgumentParser:
    parser = _Parser(prog=f"python -m {package}", description=description)
    actions = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", parser_class=_Parser)
    for name, line in commands.items():
        command = actions.add_parser(name, help=line, description=f"{line[0].upper()}{line[1:]}.")
        command.set_defaults(parser=command)
        if name == called:
            with modules_kept():
                module = importlib.import_module(f"{package}.commands.{name}{'_' * keyword.iskeyword(name)}")
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser
