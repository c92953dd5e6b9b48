"""How many processes a command may use."""

from __future__ import annotations

import argparse

__all__ = ["process_count"]


def process_count(text: str) -> int:
    """Read a number of processes from the command line."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of processes, at least 1")
    return int(text)
