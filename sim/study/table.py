"""Rows of a sweep, and their Parquet."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Row", "parquet_of", "rows_in", "squared"]

Row = dict[str, Any]
"""One point: which it is, its status and error, and the result's public keys."""


def squared(rows: Sequence[Row]) -> list[Row]:
    """Return *rows* with the columns of all of them."""
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in names} for row in rows]


def parquet_of(rows: Sequence[Row]) -> bytes:
    """Return `squared` *rows* as a Parquet file; equal rows give equal bytes."""
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({name: _column([row[name] for row in rows]) for name in rows[0]})
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink, compression="zstd", use_dictionary=False)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def rows_in(path: Path) -> list[Row]:
    """Return the rows of a Parquet file that `parquet_of` made; raise a `ValueError` if it is none."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        rows: list[Row] = parquet.ParquetFile(path).read().to_pylist()
    except pa.ArrowNotImplementedError as problem:
        raise ValueError(str(problem)) from None
    return rows


def _column(values: list[Any]) -> pa.Array:
    """Return *values* as one column: numbers and texts as they are, what does not go together as JSON."""
    import pyarrow as pa

    kinds = {type(value) for value in values} - {type(None)}
    if kinds == {list} and not any(isinstance(item, dict) for value in values for item in value or ()):
        return pa.array(values, pa.list_(pa.string()))
    if kinds == {int, float}:
        return pa.array(values, pa.float64())
    if len(kinds) > 1:
        values = [None if value is None else json.dumps(value) for value in values]
    return pa.array(values)
