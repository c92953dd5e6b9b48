"""AIPerf's ``profile_export_aiperf``: JSON with a unit beside every metric, or CSV with the unit in its name.

Its "inter token latency" is (request latency - TTFT) / (output tokens - 1) of each request, that is TPOT; the gaps
between chunks are "inter chunk latency". The CSV does not state the load. Source: AIPerf's metrics reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from calibration.reading import Content, Format, Record, record_format
from calibration.runs import Run, latency, load_of

__all__ = ["FORMATS", "has_metric", "is_genai_perf", "metrics_of_tables", "run_of"]

_UNITS_S = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0}
_STATISTICS = {"mean": "avg", "p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99"}
_METRICS = {
    "ttft": "time_to_first_token",
    "tpot": "inter_token_latency",
    "itl": "inter_chunk_latency",
    "e2e": "request_latency",
}
_NAME_AND_UNIT = re.compile(r"(.*?)\s*(?:\(([^()]*)\))?")


def run_of(metrics: Record) -> Run:
    """Return the run of metrics by name, each with its ``unit`` and ``avg``, ``p50``, ...; the load stays unknown."""
    count, errors = metrics.child("request_count"), metrics.child("error_request_count")
    fields: dict[str, Any] = {}
    for metric, name in _METRICS.items():
        fields |= _latency(metric, metrics.child(name))
    return Run(
        completed=count.whole("avg"),
        failed=errors.whole("avg"),
        duration_s=_seconds(metrics.child("benchmark_duration")),
        **_tokens(metrics),
        **fields,
    )


def _latency(metric: str, values: Record) -> dict[str, Any]:
    known = {name: values.number(key) for name, key in _STATISTICS.items()}
    return latency(metric, known, _unit_s(values)) if any(known.values()) else {}


def _tokens(metrics: Record) -> dict[str, Any]:
    keys = {
        "input_len": ("input_sequence_length", "avg"),
        "input_len_std": ("input_sequence_length", "std"),
        "output_len": ("output_sequence_length", "avg"),
        "output_len_std": ("output_sequence_length", "std"),
        "output_tok_s": ("output_token_throughput", "avg"),
        "total_tok_s": ("total_token_throughput", "avg"),
        "req_s": ("request_throughput", "avg"),
    }
    return {field: metrics.child(name).number(key) for field, (name, key) in keys.items()}


def _unit_s(values: Record) -> float:
    unit = values.text("unit") or ""
    if unit not in _UNITS_S:
        raise values.error("unit", f"unknown unit of time {unit!r}")
    return _UNITS_S[unit]


def _seconds(values: Record) -> float | None:
    average = values.number("avg")
    return None if average is None else average * _unit_s(values)


def metrics_of_tables(content: Content) -> Record:
    """Return the metrics of the tables ``Metric,avg,...`` and ``Metric,Value`` by their names in lower case."""
    metrics: dict[str, dict[str, Any]] = {}
    for row in (row for table in content.tables if table.header[:1] == ("Metric",) for row in table.records):
        match = _NAME_AND_UNIT.fullmatch(row.text("Metric") or "")
        name = re.sub(r"\W+", "_", match[1]).casefold() if match else ""
        metrics[name] = {"unit": match[2] if match else None, "avg": row.data.get("Value"), **row.data}
    return Record(metrics, content.file)


def _object(record: Record) -> Iterator[Run]:
    given = record.child("input_config")
    load, endpoint = given.child("loadgen"), given.child("endpoint")
    models = endpoint.data.get("model_names")
    rate, inflight = load.number("request_rate"), load.number("concurrency")
    yield replace(
        run_of(record),
        num_requests=load.whole("request_count"),
        model=models[0] if isinstance(models, list) and len(models) == 1 and isinstance(models[0], str) else None,
        gpu=_gpu(record),
        **(load_of(rate, inflight) if rate or inflight else {}),
    )


def is_genai_perf(record: Record) -> bool:
    """Tell whether an object of the same metrics was written by AIPerf's predecessor, by its configuration."""
    given = record.data.get("input_config")
    return isinstance(given, dict) and "perf_analyzer" in given


def _gpu(record: Record) -> str | None:
    """Return the name of the GPUs that were watched, if all have the same."""
    endpoints = record.child("telemetry_data").child("endpoints")
    machines = [endpoints.child(key).child("gpus") for key in endpoints.data]
    names = {gpus.child(key).text("gpu_name") for gpus in machines for key in gpus.data}
    return names.pop() if len(names) == 1 else None


def has_metric(content: Content, name: str) -> bool:
    """Tell whether a table of metrics has a row of that whole *name*."""
    rows = (row for table in content.tables if table.header[:1] == ("Metric",) for row in table.rows)
    return any(row[0] == name for row in rows)


FORMATS = (
    record_format(
        "AIPerf JSON",
        lambda record: record.has("request_latency", "request_throughput") and not is_genai_perf(record),
        _object,
    ),
    Format(
        "AIPerf CSV",
        lambda content: has_metric(content, "Request Count"),
        lambda content: [run_of(metrics_of_tables(content))],
    ),
)
