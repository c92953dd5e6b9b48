"""Kernel times as rows of a CSV file: what ``calibration microbench`` writes and ``calibration fit`` reads."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from calibration.reading import rows_of
from sim.errors import TraceError

__all__ = ["COLUMNS", "KernelRow", "as_csv", "read"]

_Number = TypeVar("_Number", int, float)


class KernelRow(NamedTuple):
    """The time of one kernel for one shape; fields that an operation does not have are 0.

    Attributes
    ----------
    gpu
        Accelerator, as its driver or a profile names it.
    operation
        ``gemm``, ``decode``, ``prefill``, ``copy``, ``experts`` or ``all_reduce``.
    dtype
        Weights of products, cache of attention, elements of the others.
    m, n, k
        Of a product: rows, outputs, inputs. Of experts: tokens, inner width, hidden width.
    batch, context
        Of attention: sequences, and tokens attended by each.
    heads, kv_heads, head_dim
        Of attention.
    experts, top_k
        Of routed experts.
    ranks, bytes
        Accelerators of an all-reduce; bytes that it reduces or that a copy reads.
    seconds
        Median time of one run, without the launch by the host.
    source
        Program and versions.
    """

    gpu: str
    operation: str
    dtype: str
    m: int = 0
    n: int = 0
    k: int = 0
    batch: int = 0
    context: int = 0
    heads: int = 0
    kv_heads: int = 0
    head_dim: int = 0
    experts: int = 0
    top_k: int = 0
    ranks: int = 0
    bytes: int = 0
    seconds: float = 0.0
    source: str = ""


COLUMNS = KernelRow._fields
_TEXTS = ("gpu", "operation", "dtype", "source")


def as_csv(rows: Iterable[KernelRow]) -> str:
    """Return *rows* as the text of a file."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(row._replace(seconds=float(f"{row.seconds:.5g}")) for row in rows)
    return stream.getvalue()


def read(path: Path) -> list[KernelRow]:
    """Return the rows of *path*.

    Raise a `TraceError` with the line for a cell that is no number, or a time that is not above 0.
    """
    return [_row(cells, f"{path}", line) for line, cells in rows_of(path)]


def _row(cells: dict[str, str], file: str, line: int) -> KernelRow:
    values = {name: cells.get(name) or "" for name in COLUMNS}
    counts: dict[str, Any] = {
        name: _number(int, name, values[name], file, line) for name in COLUMNS if name not in (*_TEXTS, "seconds")
    }
    seconds = _number(float, "seconds", values["seconds"], file, line)
    if not 0 < seconds < float("inf"):
        raise TraceError(f"seconds: {values['seconds']!r} is not above 0", file=file, line=line)
    texts: dict[str, Any] = {name: values[name] for name in _TEXTS}
    return KernelRow(**texts, **counts, seconds=seconds)


def _number(kind: type[_Number], name: str, text: str, file: str, line: int) -> _Number:
    try:
        return kind(text or "0")
    except ValueError:
        raise TraceError(f"{name}: {text!r} is not a number", file=file, line=line) from None
