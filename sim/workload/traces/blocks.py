"""Base of the adapters for traces that know prompts as hashes of their blocks."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sim.workload.traces.adapter import Adapter
from sim.workload.traces.pieces import Blocks, pieces_of_blocks
from sim.workload.traces.row import Record, TraceRow

__all__ = ["BlockAdapter"]


class BlockAdapter(Adapter):
    """Collects the block hashes of every row that it yields, and makes named pieces of them in the end."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._prompts: list[Blocks] = []

    def note_blocks(self, record: Record, block_tokens: int, input_tokens: int, scope: str = "") -> Blocks:
        """Note the ``hash_ids`` of the row that is about to be yielded; it may have none."""
        hashes = record.get("hash_ids", [])
        if block_tokens < 1:
            raise ValueError(f"blocks of {block_tokens} tokens (block_size)")
        if not isinstance(hashes, list) or not all(isinstance(block, int | str) for block in hashes):
            raise ValueError("hash_ids is not a list of numbers or names")
        self._prompts.append(Blocks(scope, hashes, block_tokens, input_tokens))
        return self._prompts[-1]

    def finish(self, rows: list[TraceRow]) -> Iterable[str]:
        """Name the pieces that prompts share."""
        for row, pieces in zip(rows, pieces_of_blocks(self._prompts), strict=True):
            row.segments = pieces
        return ()
