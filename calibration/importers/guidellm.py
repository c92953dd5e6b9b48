"""GuideLLM's report, JSON or YAML, one run a benchmark in it.

Keys that end in ``_ms`` are milliseconds, ``request_latency`` is seconds. ``time_per_output_token_ms`` is the latency
of the whole request by its tokens, first one included; what others call TPOT is ``inter_token_latency_ms``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from calibration.reading import Record, record_format
from calibration.runs import Run, latency, load_of

__all__ = ["FORMATS"]

_METRICS = {
    "ttft": ("time_to_first_token_ms", 1e-3),
    "tpot": ("inter_token_latency_ms", 1e-3),
    "e2e": ("request_latency", 1.0),
}
_MEANS = {
    "input_len": "prompt_token_count",
    "output_len": "output_token_count",
    "req_s": "requests_per_second",
    "output_tok_s": "output_tokens_per_second",
    "total_tok_s": "tokens_per_second",
}


def _runs(report: Record) -> Iterator[Run]:
    return (_run(benchmark) for benchmark in report.children("benchmarks"))


def _run(benchmark: Record) -> Run:
    metrics, given = benchmark.child("metrics"), benchmark.child("config", "args")
    counts = metrics.child("request_totals")
    fields: dict[str, Any] = {}
    for metric, (name, unit_s) in _METRICS.items():
        fields |= _latency(metric, metrics.child(name).child("successful"), unit_s)
    return Run(
        model=given.child("backend").text("model"),
        num_requests=counts.whole("total"),
        completed=counts.whole("successful"),
        failed=counts.whole("errored"),
        duration_s=benchmark.number("duration", "run_duration"),
        **_means(metrics),
        **_load(given.child("strategy")),
        **fields,
    )


def _means(metrics: Record) -> dict[str, Any]:
    return {field: metrics.child(name).child("successful").number("mean") for field, name in _MEANS.items()}


def _latency(metric: str, values: Record, unit_s: float) -> dict[str, Any]:
    shares = values.child("percentiles")
    known = {name: shares.number(name) for name in ("p90", "p95", "p99")}
    return latency(metric, {"mean": values.number("mean"), "p50": values.number("median"), **known}, unit_s)


def _load(strategy: Record) -> dict[str, Any]:
    """Return the load of a strategy; its own ceiling of 10,240 requests in flight is no load."""
    kind = strategy.text("type_", "kind")
    if kind == "synchronous":
        return load_of(None, 1)
    if kind == "concurrent":
        return load_of(None, strategy.number("streams", "max_concurrency"))
    if kind == "throughput":
        return load_of(None, None)
    if kind in ("constant", "poisson"):
        return {**load_of(strategy.number("rate"), None), "arrival": kind}
    return {}


FORMATS = (
    record_format(
        "GuideLLM",
        lambda record: isinstance(record.data.get("benchmarks"), list)
        and any("metrics" in item for item in record.data["benchmarks"] if isinstance(item, dict)),
        _runs,
    ),
)
