"""LLMPerf's summary, with flat keys in seconds; and a fork's, with one object for each concurrency, in milliseconds.

LLMPerf's "inter token latency" is the latency of the whole request by its tokens, the wait for the first one included:
it is neither TPOT nor ITL and stays out. Source: ray-project/llmperf, ``token_benchmark_ray.py``.
"""

from __future__ import annotations

from collections.abc import Iterator

from calibration.reading import Record, record_format
from calibration.runs import Run, latencies, load_of

__all__ = ["FORMATS"]

_METRICS = {"ttft": "results_ttft_s", "e2e": "results_end_to_end_latency_s"}
_FORK = {"ttft": "first-time-to-token_mean_in_ms", "itl": "latency_ms_per_token"}


def _summary(record: Record) -> Iterator[Run]:
    per_minute = record.number("results_num_completed_requests_per_min")
    yield Run(
        date=record.date("timestamp"),
        model=record.text("model"),
        num_requests=record.whole("results_num_requests_started"),
        completed=record.whole("results_num_completed_requests"),
        failed=record.whole("results_number_errors"),
        input_len=record.number("results_number_input_tokens_mean", "mean_input_tokens"),
        output_len=record.number("results_number_output_tokens_mean", "mean_output_tokens"),
        req_s=None if per_minute is None else per_minute / 60,
        output_tok_s=record.number("results_mean_output_throughput_token_per_s"),
        **load_of(None, record.number("num_concurrent_requests")),
        **latencies({metric: record.numbers(_statistics(name)) for metric, name in _METRICS.items()}),
    )


def _statistics(name: str) -> dict[str, str]:
    return {"mean": f"{name}_mean", **{p: f"{name}_quantiles_{p}" for p in ("p50", "p90", "p95", "p99")}}


def _fork(record: Record) -> Iterator[Run]:
    for key in record.data:
        point = record.child(key)
        yield Run(
            input_len=point.number("input_token_length"),
            output_len=point.number("output_token_length"),
            output_tok_s=point.number("throughput_token_per_s"),
            **load_of(None, point.number("concurrency")),
            **latencies({metric: {"mean": point.number(key)} for metric, key in _FORK.items()}, 1e-3),
        )


def _is_fork(record: Record) -> bool:
    points = record.data.values()
    return bool(points) and all(isinstance(point, dict) and _FORK["ttft"] in point for point in points)


FORMATS = (
    record_format(
        "LLMPerf summary", lambda record: record.has("results_ttft_s_mean", "num_concurrent_requests"), _summary
    ),
    record_format("LLMPerf by concurrency", _is_fork, _fork),
)
