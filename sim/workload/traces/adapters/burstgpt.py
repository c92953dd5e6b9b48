"""BurstGPT: a campus gateway to ChatGPT and GPT-4.

Source: github.com/HPMLL/BurstGPT. Times are whole seconds; an answer of 0 tokens is a failure; version 3 adds a
session, blank for calls by API.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from sim.workload.traces.adapter import Adapter
from sim.workload.traces.row import Record, TraceRow, number, text, whole

__all__ = ["BurstGpt"]


class BurstGpt(Adapter):
    """``Timestamp,[Session ID,Elapsed time,]Model,Request tokens,Response tokens,Total tokens,Log Type``."""

    name: ClassVar[str] = "burstgpt"
    columns: ClassVar[frozenset[str]] = frozenset({"Timestamp", "Model", "Request tokens", "Response tokens"})

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._turns: Counter[str] = Counter()

    def rows(self, record: Record) -> Iterable[TraceRow]:
        """Yield the one request of *record*."""
        session = text(record, "Session ID")
        yield TraceRow(
            number(record, "Timestamp"),
            whole(record, "Request tokens"),
            whole(record, "Response tokens"),
            session_id=session,
            turn=self._turns[session] if session else 0,
            traffic_class=text(record, "Model") or "",
        )
        if session:
            self._turns[session] += 1
