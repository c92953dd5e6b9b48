"""Alibaba Bailian (Qwen) usage traces: block hashes, and which chat a turn continues.

Source: github.com/alibaba-edu/qwen-bailian-usagetraces-anon. Times are in seconds. Blocks have 16 tokens, and every
row holds its full context; ``parent_chat_id`` is -1 for the first turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from sim.workload.traces.blocks import BlockAdapter
from sim.workload.traces.row import Record, TraceRow, number, text, whole

__all__ = ["Bailian"]

_BLOCK_TOKENS = 16


class Bailian(BlockAdapter):
    """``{"chat_id", "parent_chat_id", "timestamp", "input_length", "output_length", "type", "turn", "hash_ids"}``."""

    name: ClassVar[str] = "bailian"
    columns: ClassVar[frozenset[str]] = frozenset(
        {"chat_id", "parent_chat_id", "timestamp", "input_length", "output_length"}
    )

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._session_of: dict[int, int] = {}  # chat -> the chat that began its session
        self._turns: Counter[int] = Counter()

    def rows(self, record: Record) -> Iterable[TraceRow]:
        """Yield the one request of *record*."""
        chat, parent = whole(record, "chat_id"), whole(record, "parent_chat_id")
        session = self._session_of[chat] = self._session_of.get(parent, chat)
        input_tokens = whole(record, "input_length")
        self.note_blocks(record, _BLOCK_TOKENS, input_tokens)
        yield TraceRow(
            number(record, "timestamp"),
            input_tokens,
            whole(record, "output_length"),
            session_id=str(session),
            turn=self._turns[session],
            traffic_class=text(record, "type") or "",
            request_id=str(chat),
        )
        self._turns[session] += 1
