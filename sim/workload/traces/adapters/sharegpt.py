"""Conversations in the form of ShareGPT, as benchmark tools read them.

Source: vLLM `benchmarks/datasets.py`, `ShareGPTDataset`, and SGLang `bench_serving.py`: of each conversation only the
first question and its answer, unless one of them has fewer than 4 tokens, the question more than 1024, or both together
more than 2048.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from sim.workload.traces.row import Record, TraceRow, text
from sim.workload.traces.text_lengths import TextAdapter

__all__ = ["ShareGpt"]

_FEWEST, _LONGEST_PROMPT, _LONGEST = 4, 1024, 2048


class ShareGpt(TextAdapter):
    """``{"id": "...", "conversations": [{"from": "human", "value": "..."}, {"from": "gpt", "value": "..."}]}``."""

    name: ClassVar[str] = "sharegpt"
    columns: ClassVar[frozenset[str]] = frozenset({"conversations"})

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._left_out = 0

    def rows(self, record: Record) -> Iterable[TraceRow]:
        """Yield the first exchange of *record*, if it is one that is used."""
        turns = record.get("conversations")
        if not isinstance(turns, list):
            raise ValueError(f"conversations: {turns!r} is not a list of turns")
        if len(turns) < 2 or not all(map(_said, turns[:2])):
            self._left_out += 1
            return
        prompt, answer = (self.tokens_of(_said(turn), "value") for turn in turns[:2])
        if min(prompt, answer) < _FEWEST or prompt > _LONGEST_PROMPT or prompt + answer > _LONGEST:
            self._left_out += 1
            return
        yield TraceRow(0.0, prompt, answer, request_id=text(record, "id") or "")

    def finish(self, rows: list[TraceRow]) -> Iterable[str]:
        """Say what was left out, too."""
        if self._left_out:
            yield f"{self._left_out} conversations are left out, as benchmarks do: no answer, too short or too long"
        yield from super().finish(rows)


def _said(turn: Any) -> Any:
    """Return what is said in a *turn*; None if it has another form."""
    return turn.get("value") if isinstance(turn, Mapping) else None
