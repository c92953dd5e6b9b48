"""Summaries of Fireworks' locust load test, one or more pasted in a page; milliseconds without saying so.

"Latency per token" is (total latency - TTFT) / tokens, one more token than TPOT divides by. Source: fw-ai/benchmark,
``llm_bench/load_test.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from calibration.reading import Content, Record, text_format
from calibration.reading.printed import labelled, reports
from calibration.runs import Run, latency, load_of

__all__ = ["FORMATS"]

_TITLE = re.compile(r"^=+ Summary =+[ \t]*$", re.MULTILINE)
_END = re.compile(r"^={20,}[ \t]*$", re.MULTILINE)
_MS = 1e-3


def _runs(content: Content) -> Iterator[Run]:
    for report in reports(_TITLE, content.text):
        yield _run(Record(labelled(_END.split(report.after, 1)[0]), content.file, report.line))


def _run(report: Record) -> Run:
    tokens, per_token = report.number("Num Tokens"), report.number("Latency Per Token")
    tpot = per_token * tokens / (tokens - 1) if per_token and tokens and tokens > 1 else None
    completed = report.whole("Num Requests")
    return Run(
        model=report.text("Model"),
        input_len=report.number("Prompt Tokens"),
        output_len=tokens,
        num_requests=completed,
        completed=completed,
        req_s=report.number("Qps"),
        **_load(report),
        **latency("ttft", {"mean": report.number("Time To First Token")}, _MS),
        **latency("tpot", {"mean": tpot}, _MS),
        **latency("e2e", {"mean": report.number("Total Latency")}, _MS),
    )


def _load(report: Record) -> dict[str, Any]:
    words = (report.text("Concurrency") or "").split()
    if words[:1] == ["QPS"] and len(words) > 1:
        return load_of(Record({"Concurrency": words[1]}, report.file, report.line).number("Concurrency"), None)
    return load_of(None, report.number("Concurrency"))


FORMATS = (text_format("Fireworks locust summary", r"^=+ Summary =+[ \t]*\n+(?:.*\n){0,14}?Latency Per Token", _runs),)
