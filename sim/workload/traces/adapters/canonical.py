"""The canonical trace: JSON Lines, or CSV with the same columns but no `segments`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from sim.errors import did_you_mean
from sim.request import Segment
from sim.workload.traces.adapter import Adapter
from sim.workload.traces.row import Record, TraceRow, number, text, whole

__all__ = ["Canonical"]

_REQUIRED = frozenset({"arrival_s", "input_tokens", "output_tokens"})
_LATENCIES = ("ttft_ms", "tpot_ms", "e2e_ms")
_KNOWN = _REQUIRED.union(
    ("segments", "output_segment", "session_id", "turn", "think_s"),
    ("priority", "class", "tenant", "schema", "request_id"),
    _LATENCIES,
)


class Canonical(Adapter):
    """Our own form; times count from the start of the run."""

    name: ClassVar[str] = "canonical"
    columns: ClassVar[frozenset[str]] = _REQUIRED
    from_first: ClassVar[bool] = False
    failures_answer_nothing: ClassVar[bool] = False

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._unknown: dict[str, None] = {}

    def rows(self, record: Record) -> Iterable[TraceRow]:
        """Yield the one request of *record*."""
        self._unknown.update(dict.fromkeys(record.keys() - _KNOWN))
        yield canonical_row(record)

    def finish(self, rows: list[TraceRow]) -> Iterable[str]:
        """Name the keys that were ignored."""
        return [
            f"unknown column {key!r} is ignored{did_you_mean(key, _KNOWN, limit=1)}" for key in sorted(self._unknown)
        ]


def canonical_row(record: Record) -> TraceRow:
    """Read one canonical row; whatever is missing has its default."""
    return TraceRow(
        arrival_s=number(record, "arrival_s"),
        input_tokens=whole(record, "input_tokens"),
        output_tokens=whole(record, "output_tokens"),
        segments=_segments(record.get("segments", ())),
        output_segment=text(record, "output_segment"),
        session_id=text(record, "session_id"),
        turn=whole(record, "turn") if record.get("turn") is not None else 0,
        think_s=number(record, "think_s") if record.get("think_s") is not None else None,
        priority=whole(record, "priority") if record.get("priority") is not None else 0,
        traffic_class=text(record, "class") or "",
        tenant=text(record, "tenant") or "",
        schema=text(record, "schema") or "",
        request_id=text(record, "request_id") or "",
        **{key: number(record, key) if record.get(key) is not None else math.nan for key in _LATENCIES},
    )


def _segments(value: Any) -> tuple[Segment, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"segments: {value!r} is not a list of [name, tokens]")
    return tuple(_segment(piece) for piece in value)


def _segment(piece: Any) -> Segment:
    match piece:
        case [str(name), int(tokens)] if tokens >= 1 and not isinstance(tokens, bool):
            return name, tokens
    raise ValueError(f"segments: {piece!r} is not [name, tokens]")
