"""One request of a trace, whatever file it came from, and how its cells are read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sim.request import Segment
from sim.units import LARGEST

__all__ = ["Record", "TraceRow", "number", "text", "whole"]

_MOST_TOKENS = 2**31 - 1
_LARGEST = 2**63
_LATEST_S = 1e12  # 30,000 years, whatever year the clock counts from; microseconds are told apart until then

Record = Mapping[str, Any]
"""One line of a file: keys or column names -> values; a CSV has texts, and `None` for an empty cell."""


@dataclass(slots=True)
class TraceRow:
    """One request of a trace.

    Attributes
    ----------
    arrival_s
        When it was sent [s]; from the start of the trace, once the file has been read.
    input_tokens, output_tokens
        Length of prompt and answer [tokens]. No answer at all marks a failed request.
    segments, output_segment, session_id, turn, priority, traffic_class, tenant, schema
        As in `Request`.
    think_s
        Pause after the turn before [s]. None: the turn is sent at its own arrival.
    request_id
        Its name; empty: its place in the file.
    ttft_ms, tpot_ms, e2e_ms
        Latencies that were measured [ms], `nan` if not.
    """

    arrival_s: float
    input_tokens: int
    output_tokens: int
    segments: tuple[Segment, ...] = ()
    output_segment: str | None = None
    session_id: str | None = None
    turn: int = 0
    think_s: float | None = None
    priority: int = 0
    traffic_class: str = ""
    tenant: str = ""
    schema: str = ""
    request_id: str = ""
    ttft_ms: float = math.nan
    tpot_ms: float = math.nan
    e2e_ms: float = math.nan

    def check(self) -> None:
        """Raise a `ValueError` that says what is impossible about the row."""
        if max(self.input_tokens, self.output_tokens) > _MOST_TOKENS:
            raise ValueError(f"a prompt or an answer of more than {_MOST_TOKENS} tokens")
        if self.input_tokens < 1 and self.output_tokens:
            raise ValueError(f"a prompt of {self.input_tokens} tokens; it needs at least 1")
        if self.output_tokens < 0:
            raise ValueError(f"an answer of {self.output_tokens} tokens")
        if self.arrival_s < 0:
            raise ValueError(f"an arrival at {self.arrival_s:g} s, before the start")
        if max(self.arrival_s, self.think_s or 0.0) > _LATEST_S:
            raise ValueError(f"an arrival or a pause of more than {_LATEST_S:g} s")
        if self.think_s is not None and self.think_s < 0:
            raise ValueError(f"a pause (think_s) of {self.think_s:g} s")
        if self.turn < 0:
            raise ValueError(f"turn {self.turn}; turns count from 0")
        if self.segments and (pieces := sum(tokens for _, tokens in self.segments)) > self.input_tokens:
            raise ValueError(f"segments of {pieces} tokens in a prompt of {self.input_tokens}")


def _cell(record: Record, key: str) -> Any:
    value = record.get(key)
    if value is None:
        raise ValueError(f"no value for {key!r}")
    return value


def number(record: Record, key: str, scale: float = 1.0) -> float:
    """Read a finite number and multiply it by *scale*, or raise a `ValueError` that names *key*."""
    value = _cell(record, key)
    try:
        result = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        result = math.nan
    if not math.isfinite(result):
        raise ValueError(f"{key}: {value!r} is not a finite number")
    return 0.0 if abs(result) < 1 / LARGEST else result * scale  # so that one over a span is a number, too


def whole(record: Record, key: str) -> int:
    """Read a whole number, or raise a `ValueError` that names *key*."""
    value = _cell(record, key)
    if type(value) is int:
        if abs(value) > _LARGEST:
            raise ValueError(f"{key} is out of range")
        return value
    result = number(record, key)
    if not result.is_integer():
        raise ValueError(f"{key}: {value!r} is not a whole number")
    return int(result)


def text(record: Record, key: str, default: str | None = None) -> str | None:
    """Read a name: a text, or a number as a text; *default* if it is missing."""
    value = record.get(key)
    if value is None:
        return default
    if isinstance(value, bool | list | dict):
        raise ValueError(f"{key}: {value!r} is not a name")
    return str(value)
