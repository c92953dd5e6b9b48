"""Where the text of a command goes."""

from __future__ import annotations

import sys
from pathlib import Path

from sim.errors import UserError
from sim.wholefile import clear_leftovers, write_whole

__all__ = ["deliver", "writable"]


def writable(path: str) -> None:
    """Raise `UserError` if the folder of *path* is not there, before anything is computed for it."""
    if not Path(path).parent.is_dir():
        raise UserError(f"cannot write: there is no folder {Path(path).parent}", file=path)


def deliver(text: str, path: str | None) -> None:
    """Print *text*, or write it so that a reader of *path* sees all of it or what was there before."""
    if path is None:
        sys.stdout.write(text)
        return
    try:
        clear_leftovers(Path(path).parent)
        write_whole(Path(path), text.encode())
    except (OSError, ValueError) as problem:
        raise UserError(f"cannot write: {getattr(problem, 'strerror', None) or problem}", file=path) from None
