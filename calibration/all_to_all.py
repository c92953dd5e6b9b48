"""Fits the constants of libraries that exchange tokens: ``python -m calibration.all_to_all FOLDER [NAME]``.

Every phase is ``launch + bytes / rate``; the bytes are those that leave the rank (one node) or its node (several).
Rates are shares of the accelerator's own link or of its network card. Every second row is held out.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import least_squares

from calibration.kernels.tables import PACKAGE, RANKS_OF_SERVER
from sim.profiles.library import load_hardware

__all__ = ["LIBRARIES", "fit"]

Floats = NDArray[np.float64]

_ELEMENT_BYTES = {"dispatch": 1.0, "combine": 2.0}
_ROUTED_NODES = 4
"""DeepSeek's router lets a token go to 4 groups, and the benchmark makes every node a group."""
_MODES = {
    "low_latency": ("wideep_deepep_ll", "{}_avg_t_us"),
    "high_throughput": ("wideep_deepep_normal", "{}_transmit_us"),
}
_FIRST = "H100-SXM-80GB"
"""Whose shares hold where an accelerator has none of its own, and between nodes."""
_OTHERS = {
    "H200-SXM-141GB": "h200_sxm",
    "B200-SXM-180GB": "b200_sxm",
    "B300-SXM-288GB": "b300_sxm",
    "GB200-NVL72": "gb200",
    "GB300-NVL72": "gb300",
}
_NVLINK_BYTES = {"bfloat16": 2.0, "fp8": 1.0, "nvfp4": 0.5625}
_FEWEST_RANKS = 4
"""Of two ranks, each sends half of its tokens to itself, at another rate."""


def fit(folder: Path, library: str = "deepep") -> dict[str, Any]:
    """Return the fields of the profile of *library*, from the tables in *folder*."""
    return LIBRARIES[library](folder)


def _deepep(folder: Path) -> dict[str, Any]:
    own = {name: {mode: dict(_by_nodes(mode, folder, name, system)) for mode in _MODES}
           for name, system in _OTHERS.items()}  # fmt: skip
    return {
        "name": "deepep",
        "sources": {"all": f"{PACKAGE}: wideep_deepep_ll, wideep_deepep_normal"},
        "notes": "Fitted on H100, whose shares of the link carry over, and on five others within a node. Benchmarks"
        " route evenly; 20 or 24 SMs for throughput.",
        **{mode: dict(_by_nodes(mode, folder, _FIRST, "h100_sxm")) for mode in _MODES},
        "accelerators": own,
    }


def _by_nodes(mode: str, folder: Path, accelerator: str, system: str) -> Iterator[tuple[int, dict[str, Any]]]:
    table, column = _MODES[mode]
    path, hardware = folder / f"{table}.csv.gz", load_hardware(accelerator)
    rows = pd.read_csv(path)
    rows = rows[rows.system == system]
    if "dispatch_sms" in rows:
        rows = rows[(rows.dispatch_sms >= 20) & (rows.combine_sms >= 20)]
    assert hardware.interconnect is not None
    assert hardware.nic_bytes_per_s is not None
    for nodes in sorted(set(rows.node_num.tolist())):
        some = rows[rows.node_num == nodes]
        link = hardware.nic_bytes_per_s if nodes > 1 else hardware.interconnect.bytes_per_s
        copies = _copies(mode, nodes, some.num_topk.to_numpy(float))
        sent = (copies * some.num_token * some.hidden_size).to_numpy(float)
        phases = {
            phase: (sent * element_bytes / link, some[column.format(phase)].to_numpy(float) * 1e-6)
            for phase, element_bytes in _ELEMENT_BYTES.items()
        }
        yield nodes, _constants(phases, f"{table}: {system}, {nodes} nodes", path)


def _copies(mode: str, nodes: int, top_k: Floats) -> Floats:
    """Return how often a token leaves its rank, or with several nodes its node."""
    ranks = RANKS_OF_SERVER * nodes
    away = 1.0 - 1.0 / (ranks if nodes == 1 else nodes)
    if mode == "low_latency":
        return top_k * away
    if nodes > 1:
        return np.minimum(min(nodes, _ROUTED_NODES), top_k) * away
    return _reached(ranks, top_k) * away


def _reached(ranks: Any, top_k: Any) -> Floats:
    """Return on how many of *ranks* even and independent choices are."""
    reached: Floats = ranks * (1.0 - (1.0 - 1.0 / ranks) ** top_k)
    return reached


def _nvlink(folder: Path) -> dict[str, Any]:
    """Return TensorRT-LLM's kernels within one NVLink domain; what prepares a dispatch counts with it."""
    path = folder / "trtllm_alltoall.csv.gz"
    rows = pd.read_csv(path)
    rows = rows[(rows.kernel_source == "NVLinkTwoSided") & (rows.moe_ep_size >= _FEWEST_RANKS)]
    shape = ["moe_dtype", "moe_ep_size", "num_tokens", "hidden_size", "topk"]
    step = rows.groupby(shape).cumcount()  # prepare, dispatch, combine; for NVFP4 also a combine of fewer bits
    measured = rows.assign(step=step, seconds=rows.latency * 1e-3)
    some = measured.pivot_table(index=shape, columns="step", values="seconds").reset_index()
    link = load_hardware("GB200-NVL72").interconnect
    assert link is not None
    ranks = some.moe_ep_size.to_numpy(float)
    sent = _reached(ranks, some.topk.to_numpy(float)) * (1.0 - 1.0 / ranks) * some.num_tokens * some.hidden_size
    ideal_s = np.asarray(sent, dtype=np.float64) / link.bytes_per_s
    phases = {
        "dispatch": (ideal_s * some.moe_dtype.map(_NVLINK_BYTES).to_numpy(float), (some[0] + some[1]).to_numpy(float)),
        "combine": (ideal_s * 2.0, some[2].to_numpy(float)),
    }
    return {
        "name": "trtllm-nvlink",
        "sources": {"all": f"{PACKAGE}: trtllm_alltoall"},
        "notes": "TensorRT-LLM's NVLinkTwoSided kernels, fitted on 4 to 64 ranks of a GB200 NVL72 with even routing.",
        "high_throughput": {1: _constants(phases, "trtllm_alltoall: gb200, 4 to 64 ranks", path)},
    }


def _called_by(name: str, backend: str, dispatched: str, folder: Path) -> dict[str, Any]:
    """Return DeepEP as an engine calls it in prompts: with its layout, copies and casts, and no CUDA graph.

    Decodes are replayed from a graph, so low latency is that of the library itself, as is what goes between nodes.
    """
    plain, path = _deepep(folder), folder / "moe_a2a.csv.gz"
    rows = pd.read_csv(path)
    rows = rows[(rows.comm_backend == backend) & ((rows.phase == "combine") | (rows.comm_dtype == dispatched))]
    eager = {accelerator: _eager(rows[rows.system == system], accelerator, path) for accelerator, system in
             {_FIRST: "h100_sxm", **_OTHERS}.items()}  # fmt: skip
    own = {accelerator: {**plain["accelerators"][accelerator], "high_throughput": {1: eager[accelerator]}}
           for accelerator in _OTHERS}  # fmt: skip
    return {
        "name": name,
        "sources": {"all": f"{PACKAGE}: moe_a2a ({backend}); low latency and several nodes as of deepep"},
        "notes": "Timed without a CUDA graph, as prompts run: with the engine's copies and its wait for the counts.",
        "several_nodes_of": plain["name"],
        "low_latency": plain["low_latency"],
        "high_throughput": plain["high_throughput"] | {1: eager[_FIRST]},
        "accelerators": own,
    }


def _eager(rows: pd.DataFrame, accelerator: str, path: Path) -> dict[str, Any]:
    link = load_hardware(accelerator).interconnect
    assert link is not None
    ranks = rows.ep_size.to_numpy(float)
    copies = _reached(ranks, rows.topk.to_numpy(float)) * (1.0 - 1.0 / ranks)
    ideal_s = np.asarray(copies * rows.num_tokens * rows.hidden_size / link.bytes_per_s, dtype=np.float64)
    phases = {}
    for phase, element_bytes in _ELEMENT_BYTES.items():
        some = (rows.phase == phase).to_numpy()
        sent = _NVLINK_BYTES.get(rows.comm_dtype[some].iloc[0], element_bytes) if phase == "dispatch" else element_bytes
        phases[phase] = (ideal_s[some] * sent, rows.latency.to_numpy(float)[some] * 1e-6)
    return _constants(phases, f"moe_a2a: {rows.system.iloc[0]}, {rows.comm_backend.iloc[0]}", path)


LIBRARIES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "deepep": _deepep,
    "deepep-vllm": functools.partial(_called_by, "deepep-vllm", "deepep_ht", "default"),
    "deepep-trtllm": functools.partial(_called_by, "deepep-trtllm", "trtllm_deepep_ht", "bfloat16"),
    "trtllm-nvlink": _nvlink,
}


def _constants(phases: dict[str, tuple[Floats, Floats]], source: str, path: Path) -> dict[str, Any]:
    """Fit each phase to its ideal times and seconds; the errors are of the rows that no fit saw."""
    fitted = {phase: _line(*times) for phase, times in phases.items()}
    errors = np.concatenate([error for _, error in fitted.values()])
    summary = {
        "source": source,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "rows": sum(len(seconds) for _, seconds in phases.values()),
        "median_error": round(float(np.median(errors)), 4),
        "p90_error": round(float(np.quantile(errors, 0.9)), 4),
    }
    return {phase: constants for phase, (constants, _) in fitted.items()} | {"fit": summary}


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

    YAML().dump(fit(Path(sys.argv[1]), *sys.argv[2:]), sys.stdout)
