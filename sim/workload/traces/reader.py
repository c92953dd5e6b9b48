"""Reads a trace file of any known kind, gzipped or not."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

from sim.errors import TraceError, did_you_mean
from sim.workload.traces.adapter import AUTO, Adapter, all_adapters
from sim.workload.traces.file import RecordFile
from sim.workload.traces.row import Record, TraceRow

__all__ = ["Trace", "read_trace"]

_PLAIN = "canonical"


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace as read.

    Attributes
    ----------
    format
        Name of its adapter.
    rows
        Its requests by rising arrival; those of one instant in the order of the file.
    failed
        Requests that were left out because they had no answer.
    warnings
        What a reader should be told about the file.
    """

    format: str
    rows: list[TraceRow]
    failed: int
    warnings: tuple[str, ...]


def read_trace(path: Path, format: str = AUTO, limit: int | None = None) -> Trace:  # noqa: A002 - as in the YAML
    """Read the requests of a trace file.

    Parameters
    ----------
    path
        JSON Lines, a JSON array or CSV, gzipped or not.
    format
        Name of an adapter, or `AUTO` to tell the kind by the keys of the first record.
    limit
        Stop after so many answered requests of the file.

    Raises
    ------
    TraceError
        The file cannot be read, is of no known kind, holds no request, or has a bad row (with its line).
    """
    file = RecordFile(path)
    records = file.records()
    first = next(records, None)
    if first is None:
        raise TraceError("no requests in it", file=str(path))
    adapter = (_recognised(first, path) if format == AUTO else all_adapters()[format])(path)
    rows: list[TraceRow] = []
    answered = 0
    for record in itertools.chain([first], records):
        try:
            for row in adapter.rows(record):
                rows.append(_checked(row, adapter, len(rows)))
                answered += row.output_tokens > 0
        except ValueError as problem:
            raise TraceError(str(problem), file=str(path), line=file.line) from None
        if limit is not None and answered >= limit:
            break
    return _finished(adapter, rows, limit)


def _recognised(record: Record, path: Path) -> type[Adapter]:
    for adapter in all_adapters().values():
        if adapter.recognises(record):
            return adapter
    known = {column for adapter in all_adapters().values() for column in adapter.columns}
    misspelt = [did_you_mean(column, known, limit=1) for column in record if column not in known]
    columns = ", ".join(str(column) for column in record)
    hint = next(filter(None, misspelt), "")
    plain = all_adapters()[_PLAIN].columns
    missing = sorted(plain - record.keys())
    if 2 * len(missing) < len(plain):
        raise TraceError(f"missing: {', '.join(missing)}; the columns are {columns}{hint}", file=str(path), line=1)
    raise TraceError(
        f"no kind of trace has the columns {columns}{hint}; the plain one has arrival_s, input_tokens and "
        f"output_tokens; known kinds: {', '.join(sorted(all_adapters()))}",
        file=str(path),
        line=1,
    )


def _checked(row: TraceRow, adapter: Adapter, place: int) -> TraceRow:
    row.check()
    if not (row.output_tokens or adapter.failures_answer_nothing):
        raise ValueError("an answer of 0 tokens; it needs at least 1")
    row.request_id = row.request_id or str(place)
    return row


def _finished(adapter: Adapter, rows: list[TraceRow], limit: int | None) -> Trace:
    warnings = list(adapter.finish(rows))
    answered = [row for row in rows if row.output_tokens]
    failed = len(rows) - len(answered)
    if limit is not None:
        del answered[limit:]
    if not answered:
        raise TraceError(f"no request with an answer among its {failed}", file=str(adapter.path))
    if failed:
        warnings.append(f"{failed} of {len(rows)} requests had no answer and are left out")
    late = sum(after.arrival_s < before.arrival_s for before, after in itertools.pairwise(answered))
    if late and adapter.by_time:
        warnings.append(f"{late} rows are earlier than the row before them; the requests are sorted by arrival")
    answered.sort(key=lambda row: row.arrival_s)
    if adapter.from_first:
        start_s = answered[0].arrival_s
        for row in answered:
            row.arrival_s -= start_s
    return Trace(adapter.name, answered, failed, tuple(warnings))
