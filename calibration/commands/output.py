"""Where the text of a command goes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sim.errors import UserError

__all__ = ["deliver"]


def deliver(text: str, path: str | None) -> None:
    """Print *text*, or write it so that a reader of *path* sees all of it or what was there before."""
    if path is None:
        sys.stdout.write(text)
        return
    temporary = Path(path).with_name(f".{Path(path).name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except (OSError, ValueError) as problem:
        raise UserError(f"cannot write: {getattr(problem, 'strerror', None) or problem}", file=path) from None
    finally:
        temporary.unlink(missing_ok=True)
