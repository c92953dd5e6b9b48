"""``trtllm-bench``: what it prints, and its ``--report_json``.

Version 0.12 prints the total latency in seconds, 1.x in milliseconds: the label says which. An issue rate beyond any
clock means that all requests were there at once. Source: ``tensorrt_llm/bench/dataclasses/reporting.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from calibration.reading import Content, Record, record_format, text_format
from calibration.reading.printed import labelled
from calibration.runs import Run, latencies

__all__ = ["FORMATS"]

_ALL_AT_ONCE_RPS = 1e9
_PERCENTILES = {"mean": "average", "p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99"}
_BREAKDOWN = {"ttft": "[TTFT]", "tpot": "[TPOT]", "e2e": "[Latency]"}
_WORLD = {
    "n_gpus": "world_size",
    "tp": "tp_size",
    "pp": "pp_size",
    "ep": "ep_size",
    "max_num_seqs": "max_batch_size",
    "max_num_batched_tokens": "max_num_tokens",
}
_PRINTED_WORLD = {
    "tp": "TP Size",
    "pp": "PP Size",
    "ep": "EP Size",
    "max_num_seqs": "Max Runtime Batch Size",
    "max_num_batched_tokens": "Max Runtime Tokens",
}
_AVERAGES = {
    "ttft": "Average time-to-first-token [TTFT] (ms)",
    "tpot": "Average time-per-output-token [TPOT] (ms)",
    "e2e": "Average request latency (ms)",
}


def _printed(content: Content) -> Iterator[Run]:
    lines = {re.sub(r"\s+", " ", label): value for label, value in labelled(content.text).items()}
    report = Record(lines, content.file)
    count, rate = report.whole("Number of requests"), report.number("Issue Rate (req/sec)")
    yield Run(
        engine="tensorrt-llm",
        version=report.text("TensorRT-LLM Version", "TensorRT LLM Version"),
        model=report.text("Model"),
        weight_dtype=report.text("Quantization", "Dtype"),
        kv_dtype=report.text("KV Cache Dtype"),
        **report.wholes(_PRINTED_WORLD),
        num_requests=count,
        completed=count,
        input_len=report.number("Average Input Length (tokens)"),
        output_len=report.number("Average Output Length (tokens)"),
        duration_s=_seconds(report),
        req_s=report.number("Request Throughput (req/sec)", "Request Throughput (req/s)"),
        output_tok_s=report.number("Total Output Throughput (tokens/sec)", "Token Throughput (tokens/sec)"),
        total_tok_s=report.number("Total Token Throughput (tokens/sec)"),
        load="offline" if rate is not None and rate > _ALL_AT_ONCE_RPS else None,
        **_printed_latencies(report),
    )


def _seconds(report: Record) -> float | None:
    milliseconds = report.number("Total Latency (ms)")
    return report.number("Total Latency (seconds)") if milliseconds is None else milliseconds * 1e-3


def _printed_latencies(report: Record) -> dict[str, Any]:
    labels = {
        metric: {"mean": _AVERAGES[metric], **{p: f"{sign} {p.upper()}" for p in ("p50", "p90", "p95", "p99")}}
        for metric, sign in _BREAKDOWN.items()
    }
    return latencies({metric: report.numbers(names) for metric, names in labels.items()}, 1e-3)


def _object(record: Record) -> Iterator[Run]:
    engine, world, asked = record.child("engine"), record.child("world_info"), record.child("request_info")
    done, rate = record.child("performance"), world.number("issue_rate", infinite=True)
    duration_ms = done.number("total_latency_ms")
    yield Run(
        engine="tensorrt-llm",
        version=engine.text("version"),
        model=engine.text("model"),
        weight_dtype=engine.text("quantization", "dtype"),
        kv_dtype=engine.text("kv_cache_dtype"),
        **world.wholes(_WORLD),
        num_requests=asked.whole("num_requests"),
        completed=asked.whole("num_requests"),
        input_len=asked.number("avg_input_length"),
        output_len=asked.number("avg_output_length"),
        duration_s=None if duration_ms is None else duration_ms * 1e-3,
        req_s=done.number("request_throughput_req_s"),
        output_tok_s=done.number("system_output_throughput_tok_s"),
        total_tok_s=done.number("system_total_throughput_tok_s"),
        mode="agg+spec" if "decoding_stats" in record else None,
        load="offline" if rate is not None and rate > _ALL_AT_ONCE_RPS else None,
        **_object_latencies(record.child("streaming_metrics"), done),
    )


def _object_latencies(streamed: Record, done: Record) -> dict[str, Any]:
    places = {
        "ttft": streamed.child("ttft_percentiles"),
        "tpot": streamed.child("tpot_percentiles"),
        "e2e": done.child("request_latency_percentiles_ms"),
    }
    return latencies({metric: values.numbers(_PERCENTILES) for metric, values in places.items()}, 1e-3)


FORMATS = (
    text_format("trtllm-bench, printed", r"^(Request|Token) Throughput \((req|tokens)/sec\):", _printed),
    record_format("trtllm-bench report", lambda record: record.has("world_info", "performance"), _object),
)
