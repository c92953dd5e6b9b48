"""One file a family of architectures; each has `READERS`, from `model_type` to the function that reads it."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable

from sim.profiles.huggingface.blocks import Architecture
from sim.profiles.huggingface.config import Config

__all__ = ["Reader", "readers"]

Reader = Callable[[Config], Architecture]


@functools.cache
def readers() -> dict[str, Reader]:
    """Return the reader of every `model_type` that any file of this folder knows."""
    found: dict[str, Reader] = {}
    for module in pkgutil.iter_modules(__path__):
        found.update(importlib.import_module(f"{__name__}.{module.name}").READERS)
    return found
