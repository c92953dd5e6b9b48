"""How far a search is: runs made, or parts of it done."""

from __future__ import annotations

import time
from typing import TextIO

from sim.units import format_seconds

__all__ = ["Counter"]


class Counter:
    """Says on *stream* how far a search is: on a terminal in one line that changes, elsewhere now and then.

    Without a stream it says nothing.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream, self._live = stream, stream is not None and stream.isatty()
        self._every_s = 0.2 if self._live else 10.0
        self._began_s = self._said_s = time.monotonic()

    def run(self, runs: int) -> None:
        """Say how many *runs* there were, before the next one."""
        self._say(f"{runs:,} runs")

    def part(self, done: int, total: int) -> None:
        """Say how many parts of the search are *done*."""
        self._say(f"{done:,} of {total:,} parts")

    def end(self) -> None:
        """Leave the line."""
        if self._live and self._stream is not None:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _say(self, text: str) -> None:
        now_s = time.monotonic()
        if self._stream is None or now_s - self._said_s < self._every_s:
            return
        self._said_s = now_s
        text = f"{text} in {format_seconds(now_s - self._began_s)}"
        self._stream.write(f"\r\x1b[K{text}" if self._live else f"{text}\n")
        self._stream.flush()
