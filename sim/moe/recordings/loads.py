"""Loads of experts, from whatever recorded them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sim.errors import TraceError
from sim.moe.expert_map import Floats
from sim.moe.recordings.arrays import loads_of_arrays, read_npz, read_pt
from sim.moe.recordings.content import MAX_BYTES, as_loads, json_of, read_bytes
from sim.moe.recordings.routes import read_routes
from sim.moe.recordings.tensorrt_llm import read_statistics
from sim.paths import is_folder

__all__ = ["read_loads"]

_KEYS = ("loads", "weight")
"""Under which JSON keeps a matrix of loads: ours, and EPLB's example."""


def read_loads(path: Path) -> Floats:
    """Return the loads in *path*, shape (layers, experts).

    A matrix of layers x experts, or steps x layers x experts, as ``.npy``, ``.csv`` or ``.json``; named arrays of
    SGLang or vLLM as ``.npz`` or ``.pt``; routes as ``.jsonl``; a folder of TensorRT-LLM's expert statistics.

    Raises
    ------
    TraceError
        The file cannot be read as loads.
    """
    reader = read_statistics if is_folder(path) else _READERS.get(path.suffix)
    if reader is None:
        raise TraceError(f"{path.suffix or 'no suffix'}: loads are {', '.join(_READERS)}", file=str(path))
    return reader(path)


def _npy(path: Path) -> Floats:
    try:
        size = path.stat().st_size
        array: Any = np.load(path, mmap_mode="r", allow_pickle=False)  # mapped: its header may claim any size
    except OSError as problem:
        raise TraceError(f"cannot be read: {problem.strerror or problem}", file=str(path)) from None
    except Exception:
        raise TraceError("is no .npy array of numbers", file=str(path)) from None
    if not isinstance(array, np.ndarray) or size > MAX_BYTES:
        raise TraceError(f"is no .npy array of at most {MAX_BYTES >> 20} MiB", file=str(path))
    return as_loads(array, path)


def _csv(path: Path) -> Floats:
    rows: list[list[float]] = []
    for number, line in enumerate(read_bytes(path).decode("utf-8-sig", errors="replace").splitlines(), 1):
        if not line.strip():
            continue
        try:
            rows.append([float(value) for value in line.split(",")])
        except ValueError:
            raise TraceError("numbers between commas are wanted", file=str(path), line=number) from None
        if len(rows[-1]) != len(rows[0]):
            here = f"{len(rows[-1])} numbers where the first line has {len(rows[0])}"
            raise TraceError(here, file=str(path), line=number)
    return as_loads(rows, path)


def _json(path: Path) -> Floats:
    data = json_of(read_bytes(path), path)
    if isinstance(data, dict):
        key = next((key for key in _KEYS if key in data), None)
        if key is None:
            return loads_of_arrays(data, path)
        data = data[key]
    if not isinstance(data, list):
        raise TraceError("a list of layers, each a list of loads, is wanted", file=str(path))
    return as_loads(data, path)


_READERS: dict[str, Callable[[Path], Floats]] = {
    ".json": _json,
    ".csv": _csv,
    ".npy": _npy,
    ".npz": read_npz,
    ".pt": read_pt,
    ".jsonl": read_routes,
}
