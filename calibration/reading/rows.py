"""Our own tables: files of comma-separated values with a header, plain or gzipped."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

from calibration.reading.content import read_content
from sim.errors import TraceError

__all__ = ["header_of", "rows_of"]


def header_of(path: Path) -> list[str]:
    """Return the columns of a file, which may have none; raise a `TraceError` for one that cannot be read."""
    first, _, _ = read_content(path).text.partition("\n")
    try:
        return next(csv.reader([first]), [])
    except csv.Error:
        return []


def rows_of(path: Path, columns: Iterable[str] = ()) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line and the cells of each row.

    Raises
    ------
    TraceError
        The file cannot be read, lacks one of the *columns*, or has a row that is not as wide as its header.
    """
    reader = csv.reader(io.StringIO(read_content(path).text, newline=""))
    try:
        header = next(reader, [])
        missing = [column for column in columns if column not in header]
        if missing:
            raise TraceError(f"no column {missing[0]!r} in its header", file=str(path), line=1)
        for cells in filter(None, reader):
            if len(cells) != len(header):
                wrong = f"{len(cells)} cells below a header of {len(header)}"
                raise TraceError(wrong, file=str(path), line=reader.line_num)
            yield reader.line_num, dict(zip(header, cells, strict=True))
    except csv.Error as problem:
        raise TraceError(f"is not CSV: {problem}", file=str(path), line=reader.line_num) from None
