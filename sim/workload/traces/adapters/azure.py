"""Azure LLM inference traces: 2023 (code, conversation), 2024 (a week) and 2025 (multimodal).

Source: github.com/Azure/AzurePublicDataset. Fractions of a second have up to seven digits or none, with or without a
time zone, also within one file.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import ClassVar

from sim.workload.traces.adapter import Adapter
from sim.workload.traces.row import Record, TraceRow, text, whole

__all__ = ["Azure"]


class Azure(Adapter):
    """``TIMESTAMP,ContextTokens,GeneratedTokens``."""

    name: ClassVar[str] = "azure"
    columns: ClassVar[frozenset[str]] = frozenset({"TIMESTAMP", "ContextTokens", "GeneratedTokens"})

    def rows(self, record: Record) -> Iterable[TraceRow]:
        """Yield the one request of *record*."""
        sent_s = _seconds(text(record, "TIMESTAMP") or "")
        yield TraceRow(sent_s, whole(record, "ContextTokens"), whole(record, "GeneratedTokens"))


def _seconds(stamp: str) -> float:
    try:
        time = datetime.fromisoformat(stamp)
    except ValueError:
        raise ValueError(f"TIMESTAMP: {stamp!r} is not a date and time") from None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
