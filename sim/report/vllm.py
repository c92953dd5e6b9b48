"""The block that ``vllm bench serve`` prints, so that what reads a measured run also reads a simulated one.

Labels and alignment are those of vllm/benchmarks/serve.py with ``--percentile-metrics ttft,tpot,itl,e2el
--metric-percentiles 90,95,99``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["vllm_block"]

_WIDTH = 50
_STATISTICS = ("Mean", "Median", "P90", "P95", "P99")
_LATENCIES = {
    "ttft": ("TTFT", "Time to First Token"),
    "tpot": ("TPOT", "Time per Output Token (excl. 1st token)"),
    "itl": ("ITL", "Inter-token Latency"),
    "e2el": ("E2EL", "End-to-end Latency"),
}


def vllm_block(result: Mapping[str, Any], *, request_rate: float = math.inf, max_concurrency: int | None = None) -> str:
    """Print *result*, the dictionary of a `Summary`.

    As in the original, *request_rate* [1/s] has a line unless it is infinite, *max_concurrency* if there is
    one, and goodput if there is an SLO.
    """
    lines = [f"{' Serving Benchmark Result ':=^{_WIDTH}}", *_totals(result, request_rate, max_concurrency)]
    for name, (short, title) in _LATENCIES.items():
        lines += [f"{title:-^{_WIDTH}}"]
        for label in _STATISTICS:
            lines += [_real(f"{label} {short} (ms):", result[f"{label.lower()}_{name}_ms"])]
    return "\n".join([*lines, "=" * _WIDTH])


def _totals(result: Mapping[str, Any], request_rate: float, max_concurrency: int | None) -> list[str]:
    lines = [
        _whole("Successful requests:", result["completed"]),
        _whole("Failed requests:", result["failed"] + result["rejected"]),
    ]
    if max_concurrency is not None:
        lines += [_whole("Maximum request concurrency:", max_concurrency)]
    if not math.isinf(request_rate):
        lines += [_real("Request rate configured (RPS):", request_rate)]
    lines += [
        _real("Benchmark duration (s):", result["duration"]),
        _whole("Total input tokens:", result["total_input_tokens"]),
        _whole("Total generated tokens:", result["total_output_tokens"]),
        _real("Request throughput (req/s):", result["request_throughput"]),
    ]
    if result["request_goodput"] is not None:
        lines += [_real("Request goodput (req/s):", result["request_goodput"])]
    return [
        *lines,
        _real("Output token throughput (tok/s):", result["output_throughput"]),
        _real("Peak output token throughput (tok/s):", result["max_output_tokens_per_s"]),
        _real("Peak concurrent requests:", result["max_concurrent_requests"]),
        _real("Total token throughput (tok/s):", result["total_token_throughput"]),
    ]


def _whole(label: str, value: int) -> str:
    return f"{label:<40} {value:<10}"


def _real(label: str, value: float) -> str:
    # vLLM reports zero where it has nothing to average
    return f"{label:<40} {value if math.isfinite(value) else 0.0:<10.2f}"
