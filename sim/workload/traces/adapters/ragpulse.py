"""RAGPulse: questions to a university's policy assistant, as the pieces of each prompt.

Source: github.com/flashserve/RAGPulse. Times are seconds as texts. The lengths of the pieces are in other files,
which lie beside the trace in that repository; without them the prompts have no known pieces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from sim.errors import TraceError
from sim.request import Segment
from sim.workload.traces.adapter import Adapter
from sim.workload.traces.file import RecordFile
from sim.workload.traces.row import Record, TraceRow, number, text, whole

__all__ = ["RagPulse"]

_ORDER = ("sys_prompt", "passages_ids", "history", "web_search", "user_input")


class RagPulse(Adapter):
    """``{"timestamp", "input_length", "output_length", "hash_ids": {"sys_prompt": [...], ...}, "session_id"}``."""

    name: ClassVar[str] = "ragpulse"
    columns: ClassVar[frozenset[str]] = frozenset(
        {"timestamp", "input_length", "output_length", "hash_ids", "session_id"}
    )
    companions: ClassVar[str] = "[1-5]_*.jsonl"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._tokens_of = _piece_lengths(path.parent)
        self._turns: Counter[str] = Counter()

    @classmethod
    def recognises(cls, record: Record) -> bool:
        """Tell by the pieces, since other traces have lists of block hashes."""
        return super().recognises(record) and isinstance(record["hash_ids"], dict)

    def rows(self, record: Record) -> Iterable[TraceRow]:
        """Yield the one request of *record*."""
        session = text(record, "session_id") or ""
        input_tokens = whole(record, "input_length")
        yield TraceRow(
            number(record, "timestamp"),
            input_tokens,
            whole(record, "output_length"),
            segments=self._segments(record, input_tokens),
            session_id=session,
            turn=self._turns[session],
        )
        self._turns[session] += 1

    def finish(self, rows: list[TraceRow]) -> Iterable[str]:
        """Say so if the lengths of the pieces are missing."""
        if not self._tokens_of:
            missing = f"no files {self.companions} with the lengths of prompt pieces beside the trace"
            yield f"{missing}: prompts share nothing"

    def _segments(self, record: Record, input_tokens: int) -> tuple[Segment, ...]:
        """Return the pieces up to the first one of unknown length, cut to the prompt's length."""
        segments, left = [], input_tokens
        for piece in _pieces(record.get("hash_ids")):
            tokens = self._tokens_of.get(piece)
            if tokens is None or left <= 0:
                break
            if tokens:
                segments.append((str(piece), min(tokens, left)))
            left -= tokens
        return tuple(segments)


def _pieces(hashes: Any) -> list[int]:
    """Return the pieces of a prompt in their order."""
    if not isinstance(hashes, dict):
        raise ValueError("hash_ids is not an object")
    pieces: list[int] = []
    for kind in _ORDER:
        more = hashes.get(kind, [])
        if not isinstance(more, list) or not all(isinstance(piece, int) for piece in more):
            raise ValueError(f"hash_ids: {kind} is not a list of numbers")
        pieces += more
    return pieces


def _piece_lengths(folder: Path) -> dict[int, int]:
    """Return the tokens of each piece, from lines such as ``{"passage_id": 7, "token_length": 297}``."""
    lengths: dict[int, int] = {}
    for path in sorted(folder.glob(RagPulse.companions)):
        file = RecordFile(path)
        for record in file.records():
            match list(record.values()):
                case [int(piece), int(tokens)] if tokens >= 0:
                    lengths[piece] = tokens
                case _:
                    raise TraceError("expected a piece and its token_length", file=str(path), line=file.line)
    return lengths
