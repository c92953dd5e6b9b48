"""The command line: ``python -m sim COMMAND``."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from sim.commands import COMMANDS
from sim.errors import SimError, UserError

__all__ = ["main"]

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, 2 for input that cannot be used, 3 for infeasible."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    options = _parser(arguments[0] if arguments else "").parse_args(arguments)
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
        self.exit(UserError.exit_code, f"error: {message} (see {self.prog} --help)\n")


def _parser(command: str) -> argparse.ArgumentParser:
    """Return the parser of all commands; only the one that is called is imported."""
    parser = _Parser(prog="python -m sim", description="Simulate LLM serving before you buy the GPUs.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", parser_class=_Parser)
    for name, line in COMMANDS.items():
        sub = commands.add_parser(name, help=line, description=f"{line[0].upper()}{line[1:]}.")
        if name == command:
            module = importlib.import_module(f"sim.commands.{name}")
            module.add_arguments(sub)
            sub.set_defaults(run=module.run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
