"""How far a sweep is, and how long it will take."""

from __future__ import annotations

import time
from typing import TextIO

from sim.study.table import Row
from sim.units import format_seconds

__all__ = ["Progress"]


class Progress:
    """Says on *stream* how far a sweep is: on a terminal in one line that changes, elsewhere a line now and then."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._live = stream, stream.isatty()
        self._every_s = 0.2 if self._live else 10.0
        self._began_s = self._said_s = time.monotonic()
        self._done = self._without_result = self._total = 0

    def __call__(self, row: Row | None, left: int) -> None:
        """Count a new *row*; None before the first. *left* points are to come."""
        now_s = time.monotonic()
        if row is None:
            self._began_s, self._total = now_s, left
        else:
            self._done += 1
            self._without_result += row["status"] != "ok"
        if row is not None and (left == 0 or now_s - self._said_s >= self._every_s):
            self._said_s = now_s
            self._say(left, now_s - self._began_s)

    def _say(self, left: int, elapsed_s: float) -> None:
        text = f"{self._done:,} of {self._total:,} points"
        if self._without_result:
            text += f", {self._without_result:,} without a result"
        if left and self._done:
            text += f", about {format_seconds(elapsed_s / self._done * left)} left"
        else:
            text += f" in {format_seconds(elapsed_s)}"
        end = "\n" if left == 0 or not self._live else ""
        self._stream.write(f"\r\x1b[K{text}{end}" if self._live else f"{text}{end}")
        self._stream.flush()
