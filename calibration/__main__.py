"""The command line: ``python -m calibration COMMAND``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from calibration.commands import COMMANDS
from sim.commandline import execute

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    return execute("calibration", COMMANDS, "Fit to measurements, and judge by them.", arguments)


if __name__ == "__main__":
    sys.exit(main())
