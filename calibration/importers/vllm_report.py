"""The report that ``vllm bench serve`` and sglang's ``bench_serving`` print, with progress bars and logs around it.

Wording changed with the version: "Total Token throughput" and "Total token throughput", "Max" and "Maximum request
concurrency". Throughput has two decimals, so that counts and duration tell more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from calibration.importers.vllm_serve import run_of
from calibration.reading import Content, Record, text_format
from calibration.reading.printed import Report, argument, labelled, reports
from calibration.runs import Run

__all__ = ["FORMATS"]

_TITLE = re.compile(r"^=+ .*Serving Benchmark Result.* =+[ \t]*$", re.MULTILINE)
_END = re.compile(r"^={20,}[ \t]*$", re.MULTILINE)
_KEYS = {
    "backend": "backend",
    "successful requests": "completed",
    "failed requests": "failed",
    "maximum request concurrency": "max_concurrency",
    "max request concurrency": "max_concurrency",
    "traffic request rate": "request_rate",
    "request rate configured (rps)": "request_rate",
    "benchmark duration (s)": "duration",
    "total input tokens": "total_input_tokens",
    "total generated tokens": "total_output_tokens",
    "request throughput (req/s)": "request_throughput",
    "output token throughput (tok/s)": "output_throughput",
    "total token throughput (tok/s)": "total_token_throughput",
    "total throughput (tok/s)": "total_throughput",
}
_LATENCY = re.compile(r"(mean|median|p\d+) (ttft|tpot|itl|e2el|e2e latency) \(ms\)")
_ARGUMENTS = {"model": "model_id", "request_rate": "request_rate", "max_concurrency": "max_concurrency"}


def _runs(content: Content) -> Iterator[Run]:
    return (_run(report, content.file) for report in reports(_TITLE, content.text))


def _run(report: Report, file: str) -> Run:
    values = labelled(_END.split(report.after, 1)[0])
    printed = {key: value for label, value in values.items() if (key := _key(label.casefold()))}
    # The last arguments before a report are its own; a long log may hold those of runs that printed none.
    before = report.before[report.before.rfind("Namespace(") :]
    stated = {key: argument(before, name) for name, key in _ARGUMENTS.items()}
    run = run_of(Record({**stated, **printed}, file, report.line))
    return replace(run, num_requests=None if run.completed is None else run.completed + (run.failed or 0))


def _key(label: str) -> str | None:
    if match := _LATENCY.fullmatch(label):
        return f"{match[1]}_{match[2].replace(' ', '_')}_ms"
    return _KEYS.get(label)


FORMATS = (text_format("vLLM or sglang serving report", _TITLE.pattern, _runs),)
