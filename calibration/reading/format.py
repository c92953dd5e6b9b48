"""What an importer is: a name, a test of the content, and a reader."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from calibration.reading.content import Content, Table
from calibration.reading.record import Record
from calibration.runs import Run

__all__ = ["Format", "record_format", "table_format", "text_format"]


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of file; a module of `calibration.importers` holds one or more in its ``FORMATS``.

    Attributes
    ----------
    recognises
        Tells it by its content, whatever its name is.
    read
        Yields its runs; raises a `TraceError` that says why for a file that it recognises and cannot use.
    """

    name: str
    recognises: Callable[[Content], bool]
    read: Callable[[Content], Iterable[Run]]


def record_format(name: str, wanted: Callable[[Record], bool], runs: Callable[[Record], Iterable[Run]]) -> Format:
    """Return a format of objects, each of which holds runs by itself."""
    return Format(
        name,
        lambda content: any(map(wanted, content.objects)),
        lambda content: (run for record in content.objects if wanted(record) for run in runs(record)),
    )


def table_format(name: str, columns: Iterable[str], runs: Callable[[Table], Iterable[Run]]) -> Format:
    """Return a format of tables that have all *columns*."""
    wanted = tuple(columns)
    return Format(
        name,
        lambda content: any(table.has(*wanted) for table in content.tables),
        lambda content: (run for table in content.tables if table.has(*wanted) for run in runs(table)),
    )


def text_format(name: str, sign: str, runs: Callable[[Content], Iterable[Run]]) -> Format:
    """Return a format of printed text in which the pattern *sign* matches the begin of a line."""
    pattern = re.compile(sign, re.MULTILINE)
    return Format(name, lambda content: not content.objects and pattern.search(content.text) is not None, runs)
