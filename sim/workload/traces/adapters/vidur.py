"""Processed traces of the simulator Vidur; those of batch tasks have no times.

Source: github.com/microsoft/vidur, data/processed_traces.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from sim.workload.traces.adapter import Adapter
from sim.workload.traces.row import Record, TraceRow, number, whole

__all__ = ["Vidur"]

_ARRIVAL = ("arrived_at", "arrived_at(s)")


class Vidur(Adapter):
    """``[arrived_at,]num_prefill_tokens,num_decode_tokens``."""

    name: ClassVar[str] = "vidur"
    columns: ClassVar[frozenset[str]] = frozenset({"num_prefill_tokens", "num_decode_tokens"})

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._without_time = 0

    def rows(self, record: Record) -> Iterable[TraceRow]:
        """Yield the one request of *record*."""
        arrival = next((column for column in _ARRIVAL if column in record), None)
        self._without_time += arrival is None
        sent_s = number(record, arrival) if arrival else 0.0
        yield TraceRow(sent_s, whole(record, "num_prefill_tokens"), whole(record, "num_decode_tokens"))

    def finish(self, rows: list[TraceRow]) -> Iterable[str]:
        """Say so if there are no times."""
        if self._without_time:
            yield f"{self._without_time} rows have no time and come at the start; arrivals.rate spreads them"
