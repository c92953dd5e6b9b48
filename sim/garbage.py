"""When Python looks for garbage in cycles: not where there is none."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["modules_kept", "uncollected"]


@contextmanager
def uncollected() -> Iterator[None]:
    """Look for no garbage in cycles within this block, which makes none."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def modules_kept() -> Iterator[None]:
    """Import modules within this block that stay as long as the process: nobody looks through them, even at its end."""
    before = len(sys.modules)
    with uncollected():
        yield
    if len(sys.modules) > before:
        gc.freeze()
