"""A CSV with one row for each rate that a client sent at: latencies in seconds, without streaming.

``avg_tokens_per_sec`` is the speed of one request, not of the server, and stays out.
"""

from __future__ import annotations

from collections.abc import Iterator

from calibration.reading import Record, Table, table_format
from calibration.runs import Run, latency, load_of

__all__ = ["FORMATS"]

_COLUMNS = ("qps_target", "total_requests", "completed_requests", "avg_latency_sec", "p50_latency_sec")


def _runs(table: Table) -> Iterator[Run]:
    return (_run(row) for row in table.records)


def _run(row: Record) -> Run:
    shares = {name: row.number(f"{name}_latency_sec") for name in ("p50", "p90", "p95", "p99")}
    return Run(
        case_id=row.text("setting_label"),
        engine=row.text("engine_name"),
        num_requests=row.whole("total_requests"),
        completed=row.whole("completed_requests"),
        failed=row.whole("failed_requests"),
        output_len=row.number("avg_output_tokens"),
        req_s=row.number("achieved_requests_per_sec"),
        **load_of(row.number("qps_target"), None),
        **latency("e2e", {"mean": row.number("avg_latency_sec"), **shares}),
    )


FORMATS = (table_format("CSV by request rate", _COLUMNS, _runs),)
