"""Whole numbers by the iterations to come."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Timetable"]

Ints = NDArray[np.int64]

_FEWEST = 512


class Timetable:
    """A number for each iteration to come, 0 where nothing was added; it grows as far as anybody looks."""

    __slots__ = ("_cells", "_now")

    def __init__(self) -> None:
        self._cells: Ints = np.zeros(_FEWEST, dtype=np.int64)
        self._now = 0

    def ahead(self, iterations: int, *, after: int = 0) -> Ints:
        """Return the numbers of *iterations* iterations, which follow the next *after* ones; a view."""
        if self._now + after + iterations > len(self._cells):
            left = self._cells[self._now :]
            self._cells = np.zeros(2 * max(after + iterations, len(left), _FEWEST), dtype=np.int64)
            self._cells[: len(left)], self._now = left, 0
        begin = self._now + after
        return self._cells[begin : begin + iterations]

    def add(self, numbers: Ints) -> None:
        """Add *numbers* to those of the next iterations."""
        cells = self.ahead(len(numbers))
        cells += numbers

    def subtract(self, numbers: Ints) -> None:
        """Take *numbers* from those of the next iterations."""
        cells = self.ahead(len(numbers))
        cells -= numbers

    def advance(self, iterations: int) -> int:
        """Leave the next *iterations* behind and return their sum."""
        total = int(self.ahead(iterations).sum())
        self._now += iterations
        return total
