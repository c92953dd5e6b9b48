"""Fits an all-reduce: which message sizes go by which algorithm, and the line of each.

Engines change from a one-shot to a two-shot kernel and to the vendor's library at sizes that differ by release,
generation and number of ranks, so these sizes are looked for. Given them, each algorithm is a line in the bytes on the
bus, fitted to relative errors; lines to few points have closed solutions, and all divisions can be tried.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sim.cost.allreduce import bus_bytes

__all__ = ["Line", "line", "solve"]

_SIZES = ("small", "medium", "large")
_FEWEST = 3
"""Points of an algorithm: two would fit any line."""
_ROUNDS, _OUTLIER = 6, 0.03
"""Of reweighting, and the relative residual from which errors count linearly."""
_NOISE = 0.01
"""Relative error of a measurement at the least: a line through two points has no residuals."""

Floats = NDArray[np.float64]


class Line(NamedTuple):
    """Time of an algorithm: launch [s], seconds per byte on the bus, their relative errors, and its misfit."""

    launch_s: float
    byte_s: float
    launch_error: float
    byte_error: float
    cost: float

    def at(self, bus: float) -> float:
        """Return the time of a message of so many bytes on the bus [s]."""
        return self.launch_s + self.byte_s * bus


def solve(shapes: pd.DataFrame, ranks: int, link_bytes_per_s: float) -> tuple[dict[str, float], dict[str, float]]:
    """Return the constants of `AllReduceConstants`, and the relative standard error of each."""
    ordered = shapes.sort_values("bytes")
    payload, seconds = ordered.bytes.to_numpy(dtype=np.float64), ordered.seconds.to_numpy(dtype=np.float64)
    bus = np.asarray(bus_bytes(payload, ranks))
    starts = range(len(payload) - _FEWEST + 1)
    lines = {
        (low, high): line(bus[low:high], seconds[low:high])
        for low in starts
        for high in range(low + _FEWEST, len(payload) + 1)
    }
    first, second = min(
        itertools.combinations(range(_FEWEST, len(payload) - _FEWEST + 1), 2),
        key=lambda cuts: sum(lines[part].cost for part in _parts(cuts, len(payload)) if part in lines)
        if cuts[1] - cuts[0] >= _FEWEST
        else np.inf,
    )
    parts = _parts((first, second), len(payload))
    used = [lines[part] for part in parts]
    values = {
        f"{size}_below_bytes": _switch(used[place], used[place + 1], bus[end - 1], bus[end]) * payload[0] / bus[0]
        for place, (size, (_, end)) in enumerate(zip(_SIZES[:-1], parts, strict=False))
    }
    errors = dict.fromkeys(values, 0.0)
    for size, each in zip(_SIZES, used, strict=True):
        values |= {f"{size}_launch_s": each.launch_s, f"{size}_link": 1 / (each.byte_s * link_bytes_per_s)}
        errors |= {f"{size}_launch_s": each.launch_error, f"{size}_link": each.byte_error}
    return {name: float(value) for name, value in values.items()}, errors


def _switch(before: Line, after: Line, last: float, first: float) -> float:
    """Return the bytes on the bus from which *after* is used: between two measured sizes, the faster line holds."""
    gain_s = [before.at(bus) - after.at(bus) for bus in (last, first)]
    if gain_s[1] <= 0:
        return first
    return last * 1.001 if gain_s[0] >= 0 else last + (first - last) * gain_s[0] / (gain_s[0] - gain_s[1])


def _parts(cuts: tuple[int, int], count: int) -> tuple[tuple[int, int], ...]:
    return (0, cuts[0]), (cuts[0], cuts[1]), (cuts[1], count)


def line(bus: Floats, seconds: Floats) -> Line:
    """Return the line through relative errors, neither part of it negative, with outliers counted linearly."""
    from scipy.optimize import nnls

    rows, weights = np.stack([np.ones_like(bus), bus], axis=1) / seconds[:, None], np.ones_like(bus)
    scale = rows.max(axis=0)
    for _ in range(_ROUNDS):
        root = np.sqrt(weights)
        found, _ = nnls(rows / scale * root[:, None], root)
        residuals = rows / scale @ found - 1
        weights = 1 / np.sqrt(1 + (residuals / _OUTLIER) ** 2)
    cost = float(np.sum(np.sqrt(1 + (residuals / _OUTLIER) ** 2) - 1))
    variance = max(_NOISE**2, float(np.sum(weights * residuals**2)) / max(1, len(bus) - 2))
    covariance = np.linalg.pinv((rows / scale).T @ (rows / scale * weights[:, None])) * variance
    launch_s, byte_s = np.maximum(found / scale, [1e-8, 1e-15])
    errors = np.sqrt(np.diag(covariance)) / scale / [launch_s, byte_s]
    return Line(float(launch_s), float(byte_s), float(errors[0]), float(errors[1]), cost)
