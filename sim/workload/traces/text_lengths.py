"""Lengths of texts whose tokens nobody has counted."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sim.workload.traces.adapter import Adapter
from sim.workload.traces.row import TraceRow

__all__ = ["CHARACTERS_PER_TOKEN", "TextAdapter"]

CHARACTERS_PER_TOKEN = 4.0
"""Of English text, as a rule of thumb (OpenAI, "What are tokens and how to count them?")."""


class TextAdapter(Adapter):
    """Base of files that hold texts, and no times: lengths are estimated, and everybody asks at once."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._estimated = False

    def tokens_of(self, text: Any, key: str) -> int:
        """Return about how many tokens *text* has; raise a `ValueError` that names *key* if it is none."""
        if not isinstance(text, str) or not text:
            raise ValueError(f"{key}: {text!r} is not a text")
        self._estimated = True
        return max(1, round(len(text) / CHARACTERS_PER_TOKEN))

    def finish(self, rows: list[TraceRow]) -> Iterable[str]:
        """Say what the file does not."""
        if self._estimated:
            yield f"lengths are estimated: a token for {CHARACTERS_PER_TOKEN:g} characters of text"
        yield "no times in it, so all ask at once: set arrivals.rate or arrivals.max_concurrency"
