"""Where the text of a command goes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sim.errors import UserError
from sim.wholefile import clear_leftovers, write_whole

__all__ = ["deliver", "writable"]


def writable(path: str, suffixes: tuple[str, ...] = ()) -> None:
    """Raise `UserError` if *path* cannot be written, or has none of *suffixes*, before anything is computed for it."""
    folder = Path(path).parent
    if not folder.is_dir():
        raise UserError(f"cannot write: there is no folder {folder}", file=path)
    if Path(path).is_dir():
        raise UserError("cannot write: it is a folder", file=path)
    if not os.access(folder, os.W_OK):
        raise UserError(f"cannot write: the folder {folder} is read-only", file=path)
    if suffixes and Path(path).suffix not in suffixes:
        raise UserError(f"the name of a profile ends in {' or '.join(suffixes)}", file=path)


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
