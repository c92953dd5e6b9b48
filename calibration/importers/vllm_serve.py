"""``vllm bench serve --save-result``, its elders, forks and sweeps: a JSON object a run, or a CSV row of the same keys.

Old files have ``request_goodput:`` and ``best_of``, new ones ``failed`` and ``rtfx``; a fork writes ``median_ttft`` in
seconds where all others write ``median_ttft_ms``, so the suffix of each key decides its unit. Source: vLLM's
``vllm/benchmarks/serve.py`` (``benchmark_serving.py`` before 0.9).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from calibration.reading import Content, Format, Record
from calibration.runs import Requests, Run, latencies, load_of, summary_of

__all__ = ["FORMATS", "latencies_of", "requests_of", "run_of"]

_KEYS = ("num_prompts", "completed", "request_throughput", "output_throughput")
_NAMES = {"ttft": ("ttft",), "tpot": ("tpot",), "itl": ("itl",), "e2e": ("e2el", "e2e_latency")}
_STATISTICS = {"mean": ("mean",), "p50": ("median", "p50"), "p90": ("p90",), "p95": ("p95",), "p99": ("p99",)}
_ENGINES = {"vllm", "sglang", "tgi", "lmdeploy", "tensorrt-llm", "deepspeed-mii", "scalellm"}


def _records(content: Content) -> Iterable[Record]:
    return content.objects or (row for table in content.tables if table.has(*_KEYS) for row in table.records)


def _read(content: Content) -> Iterator[Run]:
    return (run_of(record) for record in _records(content) if record.has(*_KEYS))


def run_of(record: Record) -> Run:
    """Return the run of one object with the tool's keys."""
    completed, failed = record.whole("completed"), record.whole("failed")
    asked = record.whole("num_prompts")
    if failed is None and asked is not None and completed is not None:
        failed = max(asked - completed, 0)
    requests = requests_of(record)
    return Run(
        **_deployment(record),
        **load_of(record.number("request_rate", infinite=True), record.number("max_concurrency")),
        **_lengths(record, completed),
        **_end_to_end(requests) | latencies_of(record),
        num_requests=asked,
        completed=completed,
        failed=failed,
        duration_s=record.number("duration"),
        req_s=record.number("request_throughput"),
        output_tok_s=record.number("output_throughput"),
        total_tok_s=record.number("total_token_throughput", "total_throughput"),
        requests=requests,
    )


def _deployment(record: Record) -> dict[str, Any]:
    backend = (record.text("backend") or "").casefold()
    return {
        "date": record.date("date"),
        # The client's backend is a protocol; `openai` and the like say nothing of the engine.
        "engine": backend if backend in _ENGINES else None,
        "model": record.text("model_id"),
        "gpu": record.text("gpu_name"),
        "n_gpus": record.whole("gpu_count"),
        "tp": record.whole("tensor_parallel_size"),
        "max_num_seqs": record.whole("max_num_seqs"),
        "max_num_batched_tokens": record.whole("max_num_batched_tokens"),
        "arrival": _arrival(record.number("burstiness")),
    }


def _arrival(burstiness: float | None) -> str | None:
    if burstiness is None:
        return None
    return "poisson" if burstiness == 1 else f"gamma, burstiness {burstiness:g}"


def _lengths(record: Record, completed: int | None) -> dict[str, Any]:
    """Return mean lengths of what was completed; the lengths asked for may be twice as long."""
    totals = {"input_len": record.number("total_input_tokens"), "output_len": record.number("total_output_tokens")}
    return {name: total / completed for name, total in totals.items() if total is not None and completed}


def _end_to_end(requests: Requests | None) -> dict[str, Any]:
    """Return the end-to-end latency that a file leaves out, from its requests."""
    known = {} if requests is None else summary_of(Requests(e2e_s=requests.e2e_s))
    return {name: value for name, value in known.items() if name.startswith("e2e")}


def latencies_of(record: Record) -> dict[str, Any]:
    """Return all latencies of an object with keys such as ``mean_ttft_ms``, or ``mean_ttft`` in seconds."""
    seconds = {metric: _statistics(record, words, "") for metric, words in _NAMES.items()}
    milliseconds = {metric: _statistics(record, words, "_ms") for metric, words in _NAMES.items()}
    return latencies(seconds) | latencies(milliseconds, 1e-3)


def _statistics(record: Record, words: tuple[str, ...], suffix: str) -> dict[str, float | None]:
    return {
        name: record.number(*(f"{prefix}_{word}{suffix}" for prefix in prefixes for word in words))
        for name, prefixes in _STATISTICS.items()
    }


def requests_of(record: Record) -> Requests | None:
    """Return what ``--save-detailed`` adds, in seconds, without requests that failed; None if it is not there."""
    outputs, ttft_s = record.array("output_lens"), record.array("ttfts")
    if outputs is None or ttft_s is None or len(outputs) != len(ttft_s) or not len(outputs):
        return None
    kept = (ttft_s > 0) & (outputs > 0)
    columns = {"arrival_s": record.array("start_times"), "input_tokens": record.array("input_lens")}
    fields: dict[str, Any] = {
        name: values[kept] for name, values in columns.items() if values is not None and len(values) == len(kept)
    }
    return Requests(output_tokens=outputs[kept], ttft_s=ttft_s[kept], **fields, **_gaps(record, kept, ttft_s, outputs))


def _gaps(record: Record, kept: Any, ttft_s: Any, outputs: Any) -> dict[str, Any]:
    gaps = record.arrays("itls")
    if gaps is None or len(gaps) != len(kept):
        return {}
    streamed_s = np.array([float(gap.sum()) for gap in gaps])
    with np.errstate(divide="ignore", invalid="ignore"):
        tpot_s = np.where(outputs > 1, streamed_s / (outputs - 1), np.nan)
    chosen = tuple(gap for gap, keep in zip(gaps, kept, strict=True) if keep)
    return {"gaps_s": chosen, "e2e_s": (ttft_s + streamed_s)[kept], "tpot_s": tpot_s[kept]}


FORMATS = (Format("vLLM bench serve", lambda content: any(r.has(*_KEYS) for r in _records(content)), _read),)
