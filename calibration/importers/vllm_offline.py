"""``vllm bench latency`` and ``vllm bench throughput``: their JSON and what they print.

All times are seconds. ``tokens_per_second`` counts prompts, too. The JSON of the latency benchmark has neither lengths
nor batch size; its printed arguments do. Source: vLLM's ``vllm/benchmarks/latency.py`` and ``throughput.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from calibration.reading import Content, Record, record_format, text_format
from calibration.reading.printed import argument, reports
from calibration.runs import Requests, Run, latency, summary_of

__all__ = ["FORMATS"]

_NUMBER = r"([\d.]+(?:e[+-]?\d+)?)"
_AVERAGE = re.compile(rf"^Avg latency: {_NUMBER} seconds", re.MULTILINE)
_PERCENTILE = re.compile(rf"^(\d+)% percentile latency: {_NUMBER} seconds", re.MULTILINE)
_THROUGHPUT = re.compile(
    rf"^Throughput: {_NUMBER} requests/s, {_NUMBER} (?:total )?tokens/s(?:, {_NUMBER} output tokens/s)?", re.MULTILINE
)
_RATES = ("req_s", "total_tok_s", "output_tok_s")
_ARGUMENTS = ("model", "tensor_parallel_size", "input_len", "output_len", "batch_size")
_TOTAL = re.compile(r"^Total num (prompt|output) tokens:\s+(\d+)", re.MULTILINE)


def _latency_object(record: Record) -> Iterator[Run]:
    seconds = record.array("latencies")
    measured = {} if seconds is None or not len(seconds) else summary_of(Requests(e2e_s=seconds))
    stated = _percentiles({**record.child("percentiles").data, "mean": record.number("avg_latency")}, record)
    yield Run(engine="vllm", load="batch", **{**measured, **stated})


def _percentiles(values: dict[str, object], record: Record) -> dict[str, Any]:
    found = Record({f"p{key}" if key.isdigit() else key: value for key, value in values.items()}, record.file)
    return latency("e2e", {name: found.number(name) for name in ("mean", "p50", "p90", "p99")})


def _latency_printed(content: Content) -> Iterator[Run]:
    for report in reports(_AVERAGE, content.text):
        percentiles: dict[str, object] = dict(_PERCENTILE.findall(report.after))
        fields = _percentiles({**percentiles, "mean": report.title[1]}, Record({}, content.file, report.line))
        stated = {name: argument(report.before, name) for name in _ARGUMENTS}
        yield _with_arguments(Record(stated, content.file, report.line), fields)


def _with_arguments(stated: Record, fields: dict[str, Any]) -> Run:
    return Run(
        engine="vllm",
        model=stated.text("model"),
        tp=stated.whole("tensor_parallel_size"),
        load="batch",
        load_value=stated.number("batch_size"),
        input_len=stated.number("input_len"),
        output_len=stated.number("output_len"),
        **fields,
    )


def _throughput_object(record: Record) -> Iterator[Run]:
    requests = record.whole("num_requests")
    yield Run(
        engine="vllm",
        load="offline",
        num_requests=requests,
        completed=requests,
        failed=0,
        duration_s=record.number("elapsed_time"),
        req_s=record.number("requests_per_second"),
        total_tok_s=record.number("tokens_per_second"),
    )


def _throughput_printed(content: Content) -> Iterator[Run]:
    for report in reports(_THROUGHPUT, content.text):
        stated = {name: argument(report.before, name) for name in ("model", "num_prompts")}
        rates = dict(zip(_RATES, report.title.groups(), strict=True))
        yield _offline(Record({**stated, **rates, **dict(_TOTAL.findall(report.after))}, content.file, report.line))


def _offline(printed: Record) -> Run:
    count = printed.whole("num_prompts")
    return Run(
        engine="vllm",
        model=printed.text("model"),
        load="offline",
        num_requests=count,
        input_len=_each(printed.number("prompt"), count),
        output_len=_each(printed.number("output"), count),
        **printed.numbers({name: name for name in _RATES}),
    )


def _each(total: float | None, count: int | None) -> float | None:
    return total / count if total is not None and count else None


FORMATS = (
    record_format("vLLM bench latency", lambda record: record.has("avg_latency", "latencies"), _latency_object),
    text_format("vLLM bench latency, printed", _AVERAGE.pattern, _latency_printed),
    record_format(
        "vLLM bench throughput", lambda record: record.has("elapsed_time", "tokens_per_second"), _throughput_object
    ),
    text_format("vLLM bench throughput, printed", _THROUGHPUT.pattern, _throughput_printed),
)
