"""Content of recorded files, none of which is trusted: sizes are limited, and nothing in them is executed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sim.errors import TraceError
from sim.moe.expert_map import MAX_SLOTS, Floats, Integers

__all__ = ["as_loads", "as_slots", "json_of", "read_bytes"]

MAX_BYTES = 2**28
MAX_LAYERS = 2**10
MAX_LOAD = 1e30
"""Sums of loads stay far below what 32 bits hold."""


def read_bytes(path: Path) -> bytes:
    """Return the content of *path*; raise `TraceError` if it cannot be read or is too large."""
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as problem:
        raise TraceError(f"cannot be read: {getattr(problem, 'strerror', problem)}", file=str(path)) from None
    if len(content) > MAX_BYTES:
        raise TraceError(f"is larger than {MAX_BYTES >> 20} MiB", file=str(path))
    return content


def json_of(content: bytes, path: Path, line: int | None = None) -> Any:
    """Return *content* as JSON."""
    try:
        return json.loads(content)
    except RecursionError:
        raise TraceError("is nested too deeply", file=str(path), line=line) from None
    except ValueError as problem:  # also what is not UTF-8, and integers of thousands of digits
        raise TraceError(f"is not JSON: {problem}", file=str(path), line=line) from None


def as_loads(values: ArrayLike, path: Path) -> Floats:
    """Return *values* as loads of shape (layers, experts); one more axis in front is steps, which are summed.

    Raises
    ------
    TraceError
        They are not numbers, ragged, negative, not finite, or too many.
    """
    raw = _rectangular(values, path)
    if raw.dtype.kind not in "iuf":
        raise TraceError("holds something else than numbers", file=str(path))
    if raw.ndim > 3 or raw.size == 0:
        raise TraceError(f"has shape {raw.shape}; layers x experts are wanted", file=str(path))
    loads = np.atleast_2d(raw.astype(np.float64))
    if not np.isfinite(loads).all() or loads.min() < 0 or loads.max() > MAX_LOAD:
        wrong = loads[~((loads >= 0) & (loads <= MAX_LOAD))][0]
        raise TraceError(f"a load of {wrong:g}: loads are finite, and none is negative", file=str(path))
    loads = loads.sum(axis=0) if loads.ndim == 3 else loads
    if loads.shape[0] > MAX_LAYERS or loads.shape[1] > MAX_SLOTS:
        limits = f"at most {MAX_LAYERS} x {MAX_SLOTS} are read"
        raise TraceError(f"{loads.shape[0]} layers x {loads.shape[1]} experts: {limits}", file=str(path))
    return loads


def as_slots(values: ArrayLike, path: Path) -> Integers:
    """Return *values* as experts by layer and slot, shape (layers, slots); raise `TraceError` if they are none."""
    raw = _rectangular(values, path)
    if raw.dtype.kind not in "iu" or raw.ndim != 2 or raw.size == 0:
        raise TraceError("expert numbers by layer and slot are wanted", file=str(path))
    if raw.min() < 0 or raw.max() >= MAX_SLOTS or max(raw.shape) > MAX_SLOTS:
        raise TraceError(f"experts and slots are counted from 0 to {MAX_SLOTS - 1}", file=str(path))
    return raw.astype(np.int64)


def _rectangular(values: ArrayLike, path: Path) -> np.ndarray[Any, np.dtype[Any]]:
    if isinstance(values, list) and any(isinstance(value, bool) for row in values for value in _items(row)):
        raise TraceError("holds something else than numbers", file=str(path))
    try:
        return np.asarray(values)
    except (ValueError, OverflowError):
        raise TraceError("is ragged: every layer needs equally many numbers", file=str(path)) from None


def _items(row: Any) -> list[Any]:
    return row if isinstance(row, list) else [row]
