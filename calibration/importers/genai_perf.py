"""GenAI-Perf's ``profile_export_genai_perf``: CSV with thousands separators and a second table, or JSON.

Metrics are named and defined as in AIPerf, its successor. Source: GenAI-Perf's documentation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from calibration.importers.aiperf import has_metric, is_genai_perf, metrics_of_tables, run_of
from calibration.reading import Format, Record, record_format
from calibration.runs import Run, load_of

__all__ = ["FORMATS"]


def _object(record: Record) -> Iterator[Run]:
    stimulus = record.child("input_config").child("perf_analyzer").child("stimulus")
    rate, inflight = stimulus.number("request_rate"), stimulus.number("concurrency")
    yield replace(run_of(record), **(load_of(rate, inflight) if rate or inflight else {}))


FORMATS = (
    record_format("GenAI-Perf JSON", lambda record: "request_throughput" in record and is_genai_perf(record), _object),
    Format(
        "GenAI-Perf CSV",
        lambda content: has_metric(content, "Request Throughput (per sec)"),
        lambda content: [run_of(metrics_of_tables(content))],
    ),
)
