"""Imported runs with their flags, for people (a table) and for programs (CSV, JSON with every array)."""

from __future__ import annotations

import csv
import dataclasses
import io
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from calibration.runs import Run
from calibration.suspicion import Flag
from sim.report.json import to_json
from sim.units import format_seconds

__all__ = ["FlaggedRun", "as_csv", "as_json", "as_table"]

FlaggedRun = tuple[Run, list[Flag]]
_ARRAYS = ("requests", "steps")
_WIDE = 200
_SHOWN = 60  # more rows than this are for a program
_HEADINGS = ("file", "model", "GPU", "load", "in/out", "req/s", "out tok/s", "TTFT", "TPOT", "E2E", "flags")


def as_json(runs: Sequence[FlaggedRun]) -> str:
    """Return all fields of all runs, arrays included, as one JSON object with the key ``runs``."""
    return to_json({"runs": [_document(run, flags) for run, flags in runs]}) + "\n"


def _document(run: Run, flags: list[Flag]) -> dict[str, Any]:
    fields = {field.name: _plain(getattr(run, field.name)) for field in dataclasses.fields(run)}
    return {**fields, "flags": [dataclasses.asdict(flag) for flag in flags]}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value


def as_csv(runs: Sequence[FlaggedRun]) -> str:
    """Return one row a run, without arrays; flags by name, with a space between."""
    names = [field.name for field in dataclasses.fields(Run) if field.name not in _ARRAYS]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*names, "flags"])
    for run, flags in runs:
        cells = [getattr(run, name) for name in names]
        writer.writerow([*map(_cell, cells), " ".join(flag.check for flag in flags)])
    return stream.getvalue()


def _cell(value: Any) -> Any:
    # A spreadsheet would run a text from a benchmark file that begins like a formula.
    return f"'{value}" if isinstance(value, str) and value[:1] in tuple("=+@-\t\r") else value


def as_table(runs: Sequence[FlaggedRun]) -> str:
    """Return a table of the first runs, and below it the flags of each file with their evidence."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    stream = io.StringIO()
    console = Console(file=stream, width=_width(), highlight=False)
    table = Table(*_HEADINGS, box=None, pad_edge=False)
    for run, flags in runs[:_SHOWN]:
        table.add_row(*map(Text, _row(run, flags)))
    console.print(table)
    for line in _notes(runs):
        console.print(Text(line), soft_wrap=True)
    return stream.getvalue()


def _width() -> int:
    """Return the width of the terminal, or of a file that nobody has to fold."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDE


def _row(run: Run, flags: Iterable[Flag]) -> list[str]:
    load = " ".join(filter(None, (run.load, _number(run.load_value) if run.load_value else None)))
    times = [_seconds(run.typical(metric)) for metric in ("ttft", "tpot", "e2e")]
    lengths = f"{_number(run.input_len)}/{_number(run.output_len)}"
    names = " ".join(flag.check for flag in flags)
    rates = [_number(run.req_s), _number(run.output_tok_s)]
    return [run.file.rpartition("/")[2], run.model or "", run.gpu or "", load, lengths, *rates, *times, names]


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.4g}" if value < 1e4 else f"{value:,.0f}"


def _seconds(value: float | None) -> str:
    return "?" if value is None else format_seconds(value)


def _notes(runs: Sequence[FlaggedRun]) -> list[str]:
    lines = [f"{len(runs) - _SHOWN:,} more runs: --format csv shows all"] if len(runs) > _SHOWN else []
    groups: dict[tuple[str, str, str], list[str]] = {}
    for run, flag in ((run, flag) for run, flags in runs for flag in flags):
        groups.setdefault((run.file.rpartition("/")[2], flag.severity, flag.check), []).append(flag.text)
    return lines + [f"{': '.join(place)}: {texts[0]}{_others(texts)}" for place, texts in groups.items()]


def _others(texts: list[str]) -> str:
    return f" (and {len(texts) - 1} more such runs)" if len(texts) > 1 else ""
