"""Paths that a user wrote: whatever stands in them, asking for the file raises nothing."""

from __future__ import annotations

import contextlib
from pathlib import Path

__all__ = ["is_file", "is_folder", "located"]


def located(written: str | Path, folder: Path | None = None) -> Path:
    """Return where *written* leads from *folder*; a ``~`` of nobody stays as it is."""
    path = Path(written)
    with contextlib.suppress(RuntimeError):  # no such user, or no home
        path = path.expanduser()
    return (folder or Path()) / path


def is_file(path: Path) -> bool:
    """Tell whether *path* is a file; what cannot be looked at, such as a name that is too long, is none."""
    try:
        return path.is_file()
    except OSError:
        return False


def is_folder(path: Path) -> bool:
    """Tell whether *path* is a folder, as `is_file` does."""
    try:
        return path.is_dir()
    except OSError:
        return False
