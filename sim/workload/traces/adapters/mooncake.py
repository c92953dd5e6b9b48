"""Mooncake traces: block hashes of every prompt.

Source: github.com/kvcache-ai/Mooncake (FAST'25). Times are in milliseconds, rounded to 3 s in the real traces. Blocks
have 512 tokens, the last one may be partial; a block's id stands for the whole prefix that ends with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import ClassVar

from sim.workload.traces.blocks import BlockAdapter
from sim.workload.traces.pieces import Blocks
from sim.workload.traces.row import Record, TraceRow, number, text, whole

__all__ = ["Mooncake"]

_BLOCK_TOKENS = 512


class Mooncake(BlockAdapter):
    """``{"timestamp", "input_length", "output_length", "hash_ids"}``, and perhaps ``session_id`` and ``block_size``."""

    name: ClassVar[str] = "mooncake"
    columns: ClassVar[frozenset[str]] = frozenset({"timestamp", "input_length", "output_length"})

    def rows(self, record: Record) -> Iterable[TraceRow]:
        """Yield the one request of *record*."""
        input_tokens = whole(record, "input_length")
        block_tokens = whole(record, "block_size") if record.get("block_size") is not None else _BLOCK_TOKENS
        _check_count(self.note_blocks(record, block_tokens, input_tokens))
        yield TraceRow(
            number(record, "timestamp", 1e-3),
            input_tokens,
            whole(record, "output_length"),
            session_id=text(record, "session_id"),
        )


def _check_count(prompt: Blocks) -> None:
    needed = math.ceil(prompt.input_tokens / prompt.block_tokens)
    if prompt.hashes and len(prompt.hashes) != needed:
        raise ValueError(
            f"{len(prompt.hashes)} hash_ids for a prompt of {prompt.input_tokens} tokens, which has {needed} blocks of"
            f" {prompt.block_tokens} (block_size)"
        )
