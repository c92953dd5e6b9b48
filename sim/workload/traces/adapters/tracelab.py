"""Replay tables of TraceLab: sessions of coding agents as rounds that append to a context.

Source: github.com/uw-syfi/TraceLab, replay/README.md. ``arrival_time`` of the session and ``tool_wait_after_ms`` are in
milliseconds; a round's prompt is ``prefix_len`` tokens of the context before it and ``input_len`` new ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from sim.request import Segment
from sim.workload.traces.adapter import Adapter
from sim.workload.traces.pieces import aligned, grown
from sim.workload.traces.row import Record, TraceRow, number, text, whole

__all__ = ["TraceLab"]


@dataclass(slots=True)
class _Session:
    context: tuple[Segment, ...] = ()  # prompt and answer of the last round
    wait_s: float | None = None  # after the last round
    rounds: int = 0


class TraceLab(Adapter):
    """``session_id,arrival_time,round_idx,prefix_len,input_len,output_len,tool_wait_after_ms``."""

    name: ClassVar[str] = "tracelab"
    columns: ClassVar[frozenset[str]] = frozenset(
        {"round_idx", "prefix_len", "input_len", "output_len", "tool_wait_after_ms"}
    )
    failures_answer_nothing: ClassVar[bool] = False

    by_time: ClassVar[bool] = False

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._sessions: dict[str, _Session] = {}

    def rows(self, record: Record) -> Iterable[TraceRow]:
        """Yield the one round of *record*."""
        name = text(record, "session_id") or text(record, "id") or ""
        session = self._sessions.setdefault(name, _Session())
        prefix_tokens, output_tokens = whole(record, "prefix_len"), whole(record, "output_len")
        input_tokens = prefix_tokens + whole(record, "input_len")
        prompt = grown(session.context, prefix_tokens, f"{name}/{session.rounds}", input_tokens)
        answer = f"{name}/answer-{session.rounds}"
        yield TraceRow(
            number(record, "arrival_time", 1e-3) if record.get("arrival_time") is not None else 0.0,
            input_tokens,
            output_tokens,
            segments=prompt,
            output_segment=answer,
            session_id=name,
            turn=session.rounds,
            think_s=session.wait_s,
        )
        session.context = (*prompt, (answer, output_tokens))
        session.wait_s = number(record, "tool_wait_after_ms", 1e-3)
        session.rounds += 1

    def finish(self, rows: list[TraceRow]) -> Iterable[str]:
        """Cut the pieces so that shared ones are equal as a whole."""
        for row, pieces in zip(rows, aligned([row.segments for row in rows]), strict=True):
            row.segments = pieces
        return ()
