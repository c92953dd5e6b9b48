"""llm-d's Benchmark Report 0.2: results of any load generator, a unit beside every number, and the stack that served.

Source: llm-d-benchmark, ``benchmark_report``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from calibration.reading import Record, record_format
from calibration.runs import STATISTICS, Run, latency, load_of

__all__ = ["FORMATS"]

_UNITS_S = {"s": 1.0, "s/token": 1.0, "ms": 1e-3, "ms/token": 1e-3, "us": 1e-6, "ns": 1e-9}
_METRICS = {
    "ttft": "time_to_first_token",
    "tpot": "time_per_output_token",
    "itl": "inter_token_latency",
    "e2e": "request_latency",
}


def _runs(report: Record) -> Iterator[Run]:
    measured = report.child("results").child("request_performance").child("aggregate")
    requests, rates = measured.child("requests"), measured.child("throughput")
    total, failed = requests.whole("total"), requests.whole("failures")
    yield Run(
        case_id=report.child("run").text("uid"),
        num_requests=total,
        completed=None if total is None or failed is None else total - failed,
        failed=failed,
        input_len=requests.child("input_length").number("mean"),
        output_len=requests.child("output_length").number("mean"),
        req_s=rates.child("request_rate").number("mean"),
        output_tok_s=rates.child("output_token_rate").number("mean"),
        total_tok_s=rates.child("total_token_rate").number("mean"),
        **_latencies(measured.child("latency")),
        **_load(report.child("scenario").child("load").child("standardized")),
        **_stack(report.child("scenario")),
    )


def _latencies(latencies: Record) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for metric, name in _METRICS.items():
        if (values := latencies.child(name)).data:
            fields |= latency(metric, {key: values.number(key) for key in STATISTICS}, _unit_s(values))
    return fields


def _unit_s(values: Record) -> float:
    unit = values.text("units") or ""
    if unit not in _UNITS_S:
        raise values.error("units", f"unknown unit of time {unit!r}")
    return _UNITS_S[unit]


def _load(load: Record) -> dict[str, Any]:
    rate, inflight = load.number("rate_qps", infinite=True), load.number("concurrency", infinite=True)
    if rate is None and inflight is None:
        return {}
    prefix = load.child("prefix").child("prefix_len").number("value")
    return {**load_of(rate, None if inflight == float("inf") else inflight), "shared_prefix_tokens": prefix}


def _stack(scenario: Record) -> dict[str, Any]:
    """Return the one inference engine of the stack; of several, nothing is said."""
    parts = [part.child("standardized") for part in scenario.children("stack")]
    engines = [part for part in parts if part.data.get("kind") == "inference_engine"]
    if len(engines) != 1:
        return {}
    engine, accelerator = engines[0], engines[0].child("accelerator")
    layout, count, replicas = accelerator.child("parallelism"), accelerator.whole("count"), engine.whole("replicas")
    return {
        "engine": engine.text("tool"),
        "version": engine.text("tool_version"),
        "model": engine.child("model").text("name"),
        "gpu": accelerator.text("model"),
        "n_gpus": None if count is None else count * (replicas or 1),
        **layout.wholes({name: name for name in ("tp", "pp", "dp", "ep")}),
    }


FORMATS = (
    record_format(
        "llm-d benchmark report",
        lambda record: record.has("scenario", "version") and "request_performance" in record.child("results"),
        _runs,
    ),
)
