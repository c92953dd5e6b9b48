"""inference-perf's lifecycle reports, JSON or YAML, all in seconds.

A stage has a rate, the summary of all stages has none. Reports from Prometheus are averages of a server over a scrape
window that does not fit the stage: they are refused.
Source: kubernetes-sigs/inference-perf, ``reportgen``.
"""

from __future__ import annotations

from collections.abc import Iterator

from calibration.reading import Record, record_format
from calibration.runs import Run, latencies, load_of
from sim.errors import TraceError

__all__ = ["FORMATS"]

_METRICS = {
    "ttft": "time_to_first_token",
    "tpot": "time_per_output_token",
    "itl": "inter_token_latency",
    "e2e": "request_latency",
}
_STATISTICS = {"mean": "mean", "p50": "median", "p90": "p90", "p95": "p95", "p99": "p99"}
_RATES = {
    "req_s": "requests_per_sec",
    "output_tok_s": "output_tokens_per_sec",
    "total_tok_s": "total_tokens_per_sec",
}


def _runs(record: Record) -> Iterator[Run]:
    load, done = record.child("load_summary"), record.child("successes")
    if "latency" not in done:
        raise TraceError(
            "inference-perf's report from Prometheus averages the server over a window that is not the stage's: "
            "give the lifecycle report of the same stage",
            file=record.file,
        )
    values, requested = done.child("latency"), load.number("requested_rate")
    yield Run(
        num_requests=load.whole("count"),
        completed=done.whole("count"),
        failed=record.child("failures").whole("count"),
        duration_s=record.number("benchmark_time_seconds"),
        input_len=done.child("prompt_len").number("mean"),
        output_len=done.child("output_len").number("mean"),
        **done.child("throughput").numbers(_RATES),
        notes=None if requested else "no rate stated: a summary of several stages is no run of its own",
        **(load_of(requested, None) if requested else {}),
        **latencies({metric: values.child(name).numbers(_STATISTICS) for metric, name in _METRICS.items()}),
    )


FORMATS = (record_format("inference-perf", lambda record: record.has("load_summary", "successes"), _runs),)
