"""The log in which strides are entered as they end."""

from __future__ import annotations

from array import array
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.metrics.columns import narrow
from sim.metrics.rows import COLUMNS, StrideRows

__all__ = ["CELLS", "StrideLog", "packed"]

_TIMES = ("start_s", "first_s", "growth_s")
_OF_REQUESTS = ("replica", "decodes", "chunks", "steady_gaps", "waiting", "running", "preempted", "blocked")
_CODES = ["d" if name in _TIMES else "i" if name in _OF_REQUESTS else "q" for name in COLUMNS]
CELLS = np.dtype(list(zip(COLUMNS, _CODES, strict=True)))
"""A row as it is packed: tokens, blocks and iterations may be more than 32 bits hold, requests and replicas not."""
packed = Struct("=" + "".join(_CODES)).pack
"""Packs the cells of one row, in the order of `COLUMNS`."""


class StrideLog:
    """Collects stride rows as *cells*, `packed` (112 bytes a row).

    A long run has tens of millions: what is `put_away` takes less than half of that.
    """

    def __init__(self) -> None:
        self.cells = bytearray()
        self._odd_gaps: array[float] = array("d")
        self._pieces: dict[str, list[NDArray[Any]]] = {name: [] for name in COLUMNS}

    def extend(self, rows: NDArray[np.void]) -> None:
        """Append several *rows* of `CELLS`."""
        self.cells += rows.tobytes()

    def odd_gap(self, gap_s: float, count: int = 1) -> None:
        """Note a gap between tokens of *count* sequences that were passed over by iterations inside it."""
        self._odd_gaps.extend((gap_s, count))

    def put_away(self) -> None:
        """Keep what was logged so far as columns, each in as few bytes as hold its numbers."""
        table = np.frombuffer(self.cells, dtype=CELLS)
        for name, pieces in self._pieces.items():
            pieces.append(narrow(table[name]))
        del table
        self.cells = bytearray()

    def rows(self) -> StrideRows:
        """Return everything logged so far, in the order of logging, and forget it."""
        odd = np.array(self._odd_gaps).reshape(-1, 2)
        gaps = {"odd_gaps_s": odd[:, 0], "odd_gap_counts": odd[:, 1].astype(np.int64)}
        columns: dict[str, Any]
        if self._pieces[COLUMNS[0]]:
            self.put_away()
            columns, self._pieces = dict(self._pieces), {name: [] for name in COLUMNS}
        else:
            table = np.frombuffer(self.cells, dtype=CELLS)
            columns = {name: table[name].astype(np.float64 if name in _TIMES else np.int64) for name in COLUMNS}
            self.cells = bytearray()
        return StrideRows(**columns, **gaps)
