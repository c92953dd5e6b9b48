"""Files that appear whole or not at all, however their writer ends."""

from __future__ import annotations

import os
import re
from pathlib import Path

__all__ = ["clear_leftovers", "write_whole"]

_TEMPORARY = re.compile(r"\..+\.servecast-(\d+)")


def write_whole(path: Path, content: bytes) -> None:
    """Write *content* to a temporary file beside *path*, then put it in its place at once; raise `OSError`s."""
    temporary = path.with_name(f".{path.name}.servecast-{os.getpid()}")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def clear_leftovers(folder: Path) -> None:
    """Remove what writers left in *folder* that were killed; raise `OSError`s."""
    for path in folder.glob(".*.servecast-*"):
        match = _TEMPORARY.fullmatch(path.name)
        if match is not None and not _lives(int(match[1])):
            path.unlink(missing_ok=True)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # somebody else's
        return True
    return True
