"""The custom data set of ``vllm bench serve``: one prompt a line.

Source: vLLM `benchmarks/datasets.py`, `CustomDataset`: ``prompt``, and how many tokens to generate, if that is not
left to ``--custom-output-len``, which is 256 by default.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from sim.workload.traces.row import Record, TraceRow, whole
from sim.workload.traces.text_lengths import TextAdapter

__all__ = ["VllmCustom"]

_OUTPUT_TOKENS = 256


class VllmCustom(TextAdapter):
    """``{"prompt": "...", "output_tokens": 128}``."""

    name: ClassVar[str] = "vllm_custom"
    columns: ClassVar[frozenset[str]] = frozenset({"prompt"})

    def rows(self, record: Record) -> Iterable[TraceRow]:
        """Yield the one request of *record*."""
        asked = record.get("output_tokens") is not None
        tokens = whole(record, "output_tokens") if asked else _OUTPUT_TOKENS
        yield TraceRow(0.0, self.tokens_of(record.get("prompt"), "prompt"), tokens)
