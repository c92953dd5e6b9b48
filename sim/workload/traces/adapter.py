"""An adapter turns the records of one kind of file into trace rows."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from sim.errors import did_you_mean
from sim.workload.traces.row import Record, TraceRow

__all__ = ["AUTO", "Adapter", "all_adapters", "companions", "known_format"]

AUTO = "auto"
"""The format of a file whose first record tells its kind."""


class Adapter(ABC):
    """Base of the adapters; one file each in `sim.workload.traces.adapters`, one instance for each file read."""

    name: ClassVar[str]
    """What a user calls the format."""
    columns: ClassVar[frozenset[str]]
    """Keys or columns that every record has, and by which the kind is told."""
    from_first: ClassVar[bool] = True
    """Times count from the first request, because the file's own clock starts anywhere."""
    by_time: ClassVar[bool] = True
    """The file should be in the order of its times; a reader is told if it is not."""
    failures_answer_nothing: ClassVar[bool] = True
    """An answer of no tokens marks a failed request, which is left out; otherwise it is an error."""
    companions: ClassVar[str | None] = None
    """Pattern of further files that are read from the trace's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def recognises(cls, record: Record) -> bool:
        """Tell whether *record* is of this kind."""
        return cls.columns <= record.keys()

    @abstractmethod
    def rows(self, record: Record) -> Iterable[TraceRow]:
        """Yield the requests of one record, or raise a `ValueError` that says what is wrong with it."""

    def finish(self, rows: list[TraceRow]) -> Iterable[str]:
        """Complete the *rows* once all are known, in the order of the file; return what a reader should be told."""
        return ()


@functools.cache
def all_adapters() -> dict[str, type[Adapter]]:
    """Return all adapters by name, those with more telling columns first."""
    package = "sim.workload.traces.adapters"
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(f"{package}.{module.name}")
    found = sorted(_leaves(Adapter), key=lambda adapter: (-len(adapter.columns), adapter.name))
    return {adapter.name: adapter for adapter in found}


def _leaves(base: type[Any]) -> list[type[Adapter]]:
    return [leaf for child in base.__subclasses__() for leaf in (_leaves(child) or [child])]


def companions(trace: Path) -> list[Path]:
    """Return the files beside *trace* that are read with it if it is of the kind that has such."""
    patterns = {adapter.companions for adapter in all_adapters().values() if adapter.companions is not None}
    return sorted(path for pattern in patterns for path in trace.parent.glob(pattern))


def known_format(name: str) -> str:
    """Return *name* if it is a format, or raise a `ValueError` with the closest ones."""
    choices = [AUTO, *sorted(all_adapters())]
    if name not in choices:
        raise ValueError(f"unknown trace format {name!r}{did_you_mean(name, choices) or f'; choose {choices}'}")
    return name
