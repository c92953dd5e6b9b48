"""Trace files: what is in them, and their conversion to the canonical form."""

from __future__ import annotations

import dataclasses
import gzip
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.errors import TraceError
from sim.request import Segment
from sim.units import format_count, format_seconds
from sim.wholefile import clear_leftovers, write_whole
from sim.workload.traces import AUTO, TraceRow, read_trace, tick_s
from sim.workload.traffic import Floats

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["LengthSummary", "TraceSummary", "as_json", "as_table", "convert", "inspect", "shared_token_share"]


@dataclass(frozen=True, slots=True)
class LengthSummary:
    """Distribution of a length [tokens]."""

    mean: float
    p50: float
    p90: float
    p99: float
    max: float


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """What is in a trace file.

    Attributes
    ----------
    requests, failed
        Requests with an answer, and those without one, which are left out of everything else.
    span_s, rate_per_s
        From the first request to the last [s], and requests over that [1/s].
    interarrival_cv
        Standard deviation of the gaps between requests over their mean; 1 for a Poisson process.
    tick_s
        Tick to which the times seem to be rounded [s]; 0 if they do not.
    input_tokens, output_tokens
        Lengths of prompts and answers.
    shared_prefix_share
        Share of the prompt tokens that an earlier prompt began with, too: what an unlimited prefix cache would hit.
    sessions, follow_ups
        Sessions, and requests that continue one.
    measured
        Rows bring measured latencies.
    """

    file: str
    format: str
    requests: int
    failed: int
    span_s: float
    rate_per_s: float
    interarrival_cv: float
    tick_s: float
    input_tokens: LengthSummary
    output_tokens: LengthSummary
    shared_prefix_share: float
    sessions: int
    follow_ups: int
    measured: bool
    warnings: tuple[str, ...]


def inspect(path: Path, format: str = AUTO) -> TraceSummary:  # noqa: A002 - as in the YAML
    """Read a trace file and sum it up; see `read_trace` for the errors."""
    trace = read_trace(path, format)
    rows = trace.rows
    arrival_s = np.array([row.arrival_s for row in rows])
    gaps_s = np.diff(arrival_s)
    span_s = float(arrival_s[-1] - arrival_s[0])
    sessions = {row.session_id for row in rows if row.session_id is not None}
    return TraceSummary(
        file=str(path),
        format=trace.format,
        requests=len(rows),
        failed=trace.failed,
        span_s=span_s,
        rate_per_s=len(rows) / span_s if span_s else math.nan,
        interarrival_cv=float(np.std(gaps_s) / np.mean(gaps_s)) if span_s else math.nan,
        tick_s=tick_s(arrival_s),
        input_tokens=_summary([row.input_tokens for row in rows]),
        output_tokens=_summary([row.output_tokens for row in rows]),
        shared_prefix_share=shared_token_share(rows),
        sessions=len(sessions),
        follow_ups=sum(row.session_id is not None for row in rows) - len(sessions),
        measured=not all(math.isnan(row.e2e_ms) and math.isnan(row.ttft_ms) for row in rows),
        warnings=trace.warnings,
    )


def shared_token_share(rows: Iterable[TraceRow]) -> float:
    """Return the share of prompt tokens that lie in the longest beginning shared with an earlier prompt.

    A token's content is its segment's name and its place in the segment.
    """
    longest: dict[tuple[int, str], int] = {}  # (node, name) -> longest piece of that name seen there [tokens]
    nodes: dict[tuple[int, Segment], int] = {}  # (node, whole piece) -> the node behind it; 0 is the beginning
    shared = total = 0
    for row in rows:
        total += row.input_tokens
        node, known = 0, True
        for name, tokens in row.segments:
            seen = longest.get((node, name), 0)
            if known:
                shared += min(tokens, seen)
            longest[node, name] = max(tokens, seen)
            known = known and seen >= tokens
            node = nodes.setdefault((node, (name, tokens)), len(nodes) + 1)
    return shared / total


def as_json(summary: TraceSummary) -> dict[str, Any]:
    """Return the summary as plain values, `None` where a value does not exist."""
    return {
        key: None if isinstance(value, float) and math.isnan(value) else value
        for key, value in dataclasses.asdict(summary).items()
    }


def as_table(summary: TraceSummary) -> Table:
    """Return the summary as a table of two columns."""
    from rich.table import Table

    table = Table(title=f"{summary.file} ({summary.format})", show_header=False, title_justify="left")
    for label, value in _lines(summary):
        table.add_row(label, value)
    return table


def convert(path: Path, to: Path, format: str = AUTO) -> int:  # noqa: A002 - as in the YAML
    """Write a trace in the canonical form, JSON Lines, gzipped if *to* ends in ``.gz``; return its requests.

    The file appears when it is complete, or not at all.

    Raises
    ------
    TraceError
        *path* cannot be used as a trace, or *to* cannot be written.
    """
    rows = read_trace(path, format).rows
    content = "".join(f"{json.dumps(_canonical(row), ensure_ascii=False)}\n" for row in rows).encode()
    if to.suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    try:
        clear_leftovers(to.parent)
        write_whole(to, content)
    except OSError as problem:
        raise TraceError(f"cannot be written: {problem.strerror}", file=str(to)) from None
    return len(rows)


def _summary(lengths: list[int]) -> LengthSummary:
    values: Floats = np.array(lengths, dtype=np.float64)
    return LengthSummary(float(values.mean()), *map(float, np.percentile(values, [50, 90, 99, 100])))


def _lines(summary: TraceSummary) -> Iterator[tuple[str, str]]:
    yield "requests", format_count(summary.requests)
    yield "failed, left out", format_count(summary.failed)
    yield "span", format_seconds(summary.span_s)
    yield "rate", f"{summary.rate_per_s:.4g} requests/s"
    yield "gaps, standard deviation / mean", f"{summary.interarrival_cv:.3g}"
    yield "times rounded to", format_seconds(summary.tick_s) if summary.tick_s else "no"
    for label, length in (("prompt", summary.input_tokens), ("answer", summary.output_tokens)):
        quantiles = " / ".join(format_count(value) for value in (length.mean, length.p50, length.p90, length.p99))
        yield f"{label} tokens, mean / p50 / p90 / p99", quantiles
    yield "prompt tokens shared with an earlier prompt", f"{summary.shared_prefix_share:.1%}"
    yield "sessions", format_count(summary.sessions)
    yield "later turns of sessions", format_count(summary.follow_ups)
    yield "measured latencies", "yes" if summary.measured else "no"
    yield from (("warning", warning) for warning in summary.warnings)


def _canonical(row: TraceRow) -> dict[str, Any]:
    """Return the row's canonical keys, leaving out what has its default."""
    values = {
        "arrival_s": row.arrival_s,
        "input_tokens": row.input_tokens,
        "output_tokens": row.output_tokens,
        "segments": row.segments or None,
        "output_segment": row.output_segment,
        "session_id": row.session_id,
        "turn": row.turn or None,
        "think_s": row.think_s,
        "priority": row.priority or None,
        "class": row.traffic_class or None,
        "tenant": row.tenant or None,
        "schema": row.schema or None,
        "request_id": row.request_id,
        "ttft_ms": _or_none(row.ttft_ms),
        "tpot_ms": _or_none(row.tpot_ms),
        "e2e_ms": _or_none(row.e2e_ms),
    }
    return {key: value for key, value in values.items() if value is not None}


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
