"""Fits the constants of DeepEP's exchanges to its published benchmarks: ``python -m calibration.all_to_all FOLDER``.

Both modes are ``launch + bytes / rate``; the bytes are those that leave the rank (one node) or its node (several).
Rates are shares of NVLink 4 (450 GB/s a direction) or of a 400 Gb/s network card. Every second row is held out.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import least_squares

__all__ = ["fit"]

Floats = NDArray[np.float64]

_RANKS_OF_NODE = 8
_LINK_BYTES_PER_S = 450e9
_NETWORK_BYTES_PER_S = 50e9
_ELEMENT_BYTES = {"dispatch": 1.0, "combine": 2.0}
_ROUTED_NODES = 4
"""DeepSeek's router lets a token go to 4 groups, and the benchmark makes every node a group."""
_MODES = {
    "low_latency": ("wideep_deepep_ll", "{}_avg_t_us"),
    "high_throughput": ("wideep_deepep_normal", "{}_transmit_us"),
}


def fit(folder: Path) -> dict[str, Any]:
    """Return the fields of the profile, from the tables in *folder*."""
    return {
        "name": "deepep",
        "sources": {"all": "aiconfigurator-core 0.12.0 (NVIDIA, Apache-2.0): wideep_deepep_ll, wideep_deepep_normal"},
        "notes": "Fitted on H100; shares of the link carry over. Benchmarks route evenly; 20 or 24 SMs for throughput.",
        **{mode: dict(_by_nodes(mode, folder)) for mode in _MODES},
    }


def _by_nodes(mode: str, folder: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    table, column = _MODES[mode]
    path = folder / f"{table}.csv.gz"
    rows = pd.read_csv(path)
    rows = rows[rows.system == "h100_sxm"]
    if "dispatch_sms" in rows:
        rows = rows[(rows.dispatch_sms >= 20) & (rows.combine_sms >= 20)]
    for nodes in sorted(set(rows.node_num.tolist())):
        some = rows[rows.node_num == nodes]
        errors: list[Floats] = []
        constants: dict[str, Any] = {}
        for phase, element_bytes in _ELEMENT_BYTES.items():
            moved = _copies(mode, nodes, some.num_topk.to_numpy(float)) * some.num_token * some.hidden_size
            seconds = some[column.format(phase)].to_numpy(float) * 1e-6
            link = _NETWORK_BYTES_PER_S if nodes > 1 else _LINK_BYTES_PER_S
            constants[phase], error = _line(moved.to_numpy(float) * element_bytes / link, seconds)
            errors.append(error)
        constants["fit"] = {
            "source": f"{table}: h100_sxm, {nodes} nodes",
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "rows": 2 * len(some),
            "median_error": round(float(np.median(np.concatenate(errors))), 4),
            "p90_error": round(float(np.quantile(np.concatenate(errors), 0.9)), 4),
        }
        yield nodes, constants


def _copies(mode: str, nodes: int, top_k: Floats) -> Floats:
    """Return how often a token leaves its rank, or with several nodes its node."""
    ranks = _RANKS_OF_NODE * nodes
    away = 1.0 - 1.0 / (ranks if nodes == 1 else nodes)
    if mode == "low_latency":
        return top_k * away
    if nodes > 1:
        return np.minimum(min(nodes, _ROUTED_NODES), top_k) * away
    reached: Floats = ranks * (1.0 - (1.0 - 1.0 / ranks) ** top_k) * away
    return reached


def _line(ideal_s: Floats, seconds: Floats) -> tuple[dict[str, Any], Floats]:
    """Fit ``launch + ideal / share`` to every second row; return it and the errors of the others."""

    def residual(logs: Floats, rows: slice) -> Floats:
        return np.asarray(np.log(np.exp(logs[0]) + ideal_s[rows] / np.exp(logs[1])) - np.log(seconds[rows]))

    seen, held_out = slice(0, None, 2), slice(1, None, 2)
    found = least_squares(residual, np.log([3e-5, 0.5]), loss="soft_l1", f_scale=0.1, args=(seen,))
    slopes: Floats = np.asarray(found.jac)
    spread = np.sqrt(np.diag(np.linalg.pinv(slopes.T @ slopes)) * 2 * found.cost / max(len(found.fun) - 2, 1))
    launch_s, share = np.exp(found.x)
    constants = {
        "launch_s": _constant(launch_s, launch_s * spread[0], (1e-6, 1e-3)),
        "link": _constant(share, share * spread[1], (0.01, 2.0)),
    }
    return constants, np.abs(np.expm1(residual(found.x, held_out)))


def _constant(value: float, stderr: float, bounds: tuple[float, float]) -> dict[str, Any]:
    return {"value": float(f"{value:.4g}"), "stderr": float(f"{stderr:.2g}"), "bounds": list(bounds)}


if __name__ == "__main__":
    from ruamel.yaml import YAML

    YAML().dump(fit(Path(sys.argv[1])), sys.stdout)
