"""MLPerf's ``mlperf_log_summary.txt``: nanoseconds. System and precision are in other files of a submission.

The load of the Server scenario is what was really scheduled; the latency of an Offline run is its place in the queue.
Source: MLCommons loadgen, ``results.cc``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from calibration.reading import Content, Record, text_format
from calibration.reading.printed import labelled
from calibration.runs import Run, latencies, load_of

__all__ = ["FORMATS"]

_TITLE = r"^MLPerf Results Summary\s*$"
_NS = 1e-9
_METRICS = {
    "e2e": ("latency", "latency"),
    "ttft": ("First Token latency", "first token latency"),
    "tpot": ("Time to Output Token", "time to output token"),
}
_SHARES = {"p50": "50.00", "p90": "90.00", "p95": "95.00", "p99": "99.00"}


def _runs(content: Content) -> Iterator[Run]:
    lines = {re.sub(r"\s+", " ", label): value for label, value in labelled(content.text).items()}
    report = Record(lines, content.file)
    samples = report.number("Completed samples per second", "Samples per second")
    tokens = report.number("Completed tokens per second", "Tokens per second")
    yield Run(
        req_s=samples,
        output_tok_s=tokens,
        output_len=tokens / samples if tokens and samples else None,
        quality=None if report.text("Result is") == "VALID" else "invalid",
        **_load(report),
        **_latencies(report),
    )


def _load(report: Record) -> dict[str, Any]:
    scenario = report.text("Scenario")
    if scenario in ("Server", "Interactive"):
        return {**load_of(report.number("Scheduled samples per second", "target_qps"), None), "arrival": "poisson"}
    return load_of(None, None) if scenario == "Offline" else {}


def _latencies(report: Record) -> dict[str, Any]:
    return latencies({metric: report.numbers(_labels(*names)) for metric, names in _METRICS.items()}, _NS)


def _labels(mean: str, share: str) -> dict[str, str]:
    shares = {name: f"{number} percentile {share} (ns)" for name, number in _SHARES.items()}
    return {"mean": f"Mean {mean} (ns)", **shares}


FORMATS = (text_format("MLPerf summary", _TITLE, _runs),)
