"""The command line: ``python -m sim COMMAND``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from sim.commandline import execute
from sim.commands import COMMANDS

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    return execute("sim", COMMANDS, "Simulate LLM serving before you buy the GPUs.", arguments)


if __name__ == "__main__":
    sys.exit(main())
