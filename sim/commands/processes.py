"""How many of something a command may use."""

from __future__ import annotations

import argparse
from collections.abc import Callable

__all__ = ["count_of", "process_count"]


def count_of(what: str) -> Callable[[str], int]:
    """Return what reads a number of *what* from the command line, at least 1."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < 1:
            raise argparse.ArgumentTypeError(f"{text!r} is no number of {what}, at least 1")
        return int(text)

    return read


process_count = count_of("processes")
"""Read a number of processes from the command line."""
