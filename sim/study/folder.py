"""The folder of a sweep: a file a point while it runs, one table when it is done.

Every file appears whole or not at all, so a sweep can be killed at any moment and continued.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from sim.errors import UserError
from sim.study.table import Row, parquet_of, rows_in
from sim.wholefile import write_whole

__all__ = ["SweepFolder"]


class SweepFolder:
    """Where the rows of a sweep are kept.

    Attributes
    ----------
    table
        The finished table, by the numbers of the points.
    """

    def __init__(self, folder: Path) -> None:
        self.table = folder / "sweep.parquet"
        self._parts = folder / "_points"  # readers of a folder of Parquet files pass over names with an underscore

    def clear(self) -> None:
        """Forget an earlier sweep; raise a `UserError` if it was never finished, since its points would be lost."""
        points = len(list(self._parts.glob("*.parquet")))
        if points:
            kept = f"holds {points} points of an unfinished sweep: --resume goes on with it; or take another folder"
            raise UserError(kept, file=str(self.table.parent))
        self.table.unlink(missing_ok=True)

    def rows(self) -> dict[int, Row]:
        """Return the rows of an earlier sweep by the number of their point."""
        files = (self.table, *sorted(self._parts.glob("*.parquet")))
        return {row["point"]: row for path in files for row in _rows(path)}

    def add(self, row: Row) -> None:
        """Keep the *row* of a point that has just finished."""
        self._write(self._parts / f"{row['point']:06d}.parquet", [row])

    def finish(self, rows: Sequence[Row]) -> None:
        """Put all *rows* of the sweep into one table, instead of the files of its points."""
        self._write(self.table, rows)
        shutil.rmtree(self._parts, ignore_errors=True)

    def _write(self, path: Path, rows: Sequence[Row]) -> None:
        try:
            path.parent.mkdir(exist_ok=True)
            write_whole(path, parquet_of(rows))
        except OSError as error:
            raise UserError(f"cannot write: {error.strerror or error}", file=str(path)) from error


def _rows(path: Path) -> list[Row]:
    """Return the rows of a table of a sweep; none if it is missing or something else."""
    try:
        return [row for row in rows_in(path) if "point" in row]
    except (OSError, ValueError):
        return []
