"""Routes: a line of JSON for each token, or batch of tokens, with the experts that the router chose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sim.errors import TraceError
from sim.moe.expert_map import MAX_SLOTS, Floats
from sim.moe.recordings.content import MAX_LAYERS, as_loads, json_of, read_bytes

__all__ = ["read_routes"]

_DUMMY_RUN = 256
"""So many equal choices in a row are no text: engines warm up with equal tokens."""


def read_routes(path: Path) -> Floats:
    """Return how often each expert was chosen, shape (layers, experts), up to the highest numbers that occur.

    A line has ``layer`` and ``topk_ids`` (one token) or ``topk_experts`` (a list of tokens); lines with neither are
    skipped, as are choices that a layer repeats 256 times or more without another between them.
    """
    counts: Counter[tuple[int, int]] = Counter()
    last: dict[int, tuple[tuple[int, ...], int]] = {}
    for layer, chosen in _routes(path):
        before, run = last.get(layer, ((), 0))
        if chosen == before:
            run += 1
        else:
            _count(counts, layer, before, run)
            run = 1
        last[layer] = chosen, run
    for layer, (chosen, run) in last.items():
        _count(counts, layer, chosen, run)
    if not counts:
        raise TraceError("holds no routes", file=str(path))
    loads = np.zeros((1 + max(layer for layer, _ in counts), 1 + max(expert for _, expert in counts)))
    for at, number in counts.items():
        loads[at] = number
    return as_loads(loads[loads.any(axis=1)], path)


def _count(counts: Counter[tuple[int, int]], layer: int, chosen: tuple[int, ...], run: int) -> None:
    if run < _DUMMY_RUN:
        for expert in chosen:
            counts[layer, expert] += run


def _routes(path: Path) -> Iterator[tuple[int, tuple[int, ...]]]:
    for number, line in enumerate(read_bytes(path).splitlines(), 1):
        row = json_of(line, path, number) if line.strip() else None
        if isinstance(row, dict) and ("topk_ids" in row or "topk_experts" in row):
            layer = row.get("layer", 0)
            tokens = [row["topk_ids"]] if "topk_ids" in row else row["topk_experts"]
            if not _whole(layer, MAX_LAYERS) or not isinstance(tokens, list):
                raise TraceError("layer and lists of experts are wanted", file=str(path), line=number)
            for chosen in tokens:
                if not isinstance(chosen, list) or not all(_whole(expert, MAX_SLOTS) for expert in chosen):
                    raise TraceError("layer and lists of experts are wanted", file=str(path), line=number)
                yield layer, tuple(sorted(chosen))


def _whole(value: Any, below: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < below
