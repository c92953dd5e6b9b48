"""What a parser did wrong, told apart by where, and the smallest input that does it."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path

__all__ = ["place_of", "smallest"]

_MOST_TRIES = 4000


def place_of(problem: BaseException) -> str:
    """Return the innermost line of our own code that *problem* came through."""
    frames = [frame for frame in traceback.extract_tb(problem.__traceback__) if "/fuzz/" not in frame.filename]
    own = [frame for frame in frames if "/sim/" in frame.filename or "/calibration/" in frame.filename]
    frame = (own or frames or [None])[-1]
    return "nowhere" if frame is None else f"{'/'.join(Path(frame.filename).parts[-3:])}:{frame.lineno}"


def smallest(content: bytes, still_wrong: Callable[[bytes], bool]) -> bytes:
    """Return *content* with whatever can be left out left out: halves, then quarters, down to single bytes."""
    size, tries = max(len(content) // 2, 1), 0
    while size and tries < _MOST_TRIES:
        at = 0
        while at < len(content) and tries < _MOST_TRIES:
            tries += 1
            shorter = content[:at] + content[at + size :]
            if still_wrong(shorter):
                content = shorter
            else:
                at += size
        size //= 2
    return content
