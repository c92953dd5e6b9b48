"""Benchmark files to rows: each module here is a tool's output, told by its content and never by its name.

A new format is one new module with a ``FORMATS`` tuple.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from dataclasses import replace
from pathlib import Path

from calibration.reading import Content, Format, read_content
from calibration.runs import Run
from sim.errors import TraceError

__all__ = ["formats", "import_file"]


@functools.cache
def formats() -> tuple[Format, ...]:
    """Return every format that has a module here."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return tuple(entry for module in modules for entry in module.FORMATS)


def import_file(path: str | Path) -> list[Run]:
    """Read all runs of a benchmark file, plain or gzipped.

    A file may hold several formats, such as a page of Markdown with tables of two tools.

    Raises
    ------
    TraceError
        The file cannot be read, is of no known format, or holds nothing that can be used; one line that says why.
    """
    content = read_content(path)
    found = [kind for kind in formats() if kind.recognises(content)]
    if not found:
        raise content.refusal(known=", ".join(kind.name for kind in formats()))
    runs = [replace(run, file=content.file, format=kind.name) for kind in found for run in _read(kind, content)]
    if not runs:
        raise TraceError(f"{found[0].name}: holds no run", file=content.file)
    return runs


def _read(kind: Format, content: Content) -> list[Run]:
    try:
        return list(kind.read(content))
    except OverflowError:
        raise TraceError(f"{kind.name}: holds a number that is out of range", file=content.file) from None
