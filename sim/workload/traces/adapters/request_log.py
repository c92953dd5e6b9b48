"""Per-request logs of benchmark runs, with measured latencies beside the lengths."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from sim.workload.traces.adapter import Adapter
from sim.workload.traces.adapters.canonical import canonical_row
from sim.workload.traces.row import Record, TraceRow, number, whole

__all__ = ["RequestLog"]

_OTHER_NAMES = {
    "arrival_rel_s": "arrival_s",
    "generated_tokens": "output_tokens",
    "server_input_tokens": "input_tokens",  # what the server counted, beside the nominal length of the client
    "tenant": "class",
}


class RequestLog(Adapter):
    """One row a request: arrival, lengths, TTFT, TPOT and E2E; requests with an error are left out."""

    name: ClassVar[str] = "request_log"
    columns: ClassVar[frozenset[str]] = frozenset({"input_tokens", "ttft_ms", "tpot_ms", "e2e_ms"})
    from_first: ClassVar[bool] = False
    by_time: ClassVar[bool] = False  # rows are by arrival, and some were sent later

    def rows(self, record: Record) -> Iterable[TraceRow]:
        """Yield the one request of *record*, at the time when it was really sent."""
        named = {name: record[other] for other, name in _OTHER_NAMES.items() if record.get(other) is not None}
        if record.get("has_error") is not None and whole(record, "has_error"):
            named["output_tokens"] = 0
        row = canonical_row({**record, **named})
        if record.get("send_delay_ms") is not None:
            row.arrival_s += number(record, "send_delay_ms", 1e-3)
        yield row
