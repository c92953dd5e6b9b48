"""What is fitted: constants with their bounds, and the prediction of the simulation's own operations.

Each function maps constants and shapes to seconds. It builds the same operation that the cost model builds, with
arrays of shapes in place of one shape.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from calibration.kernels import collective
from calibration.kernels.problem import Free, Problem, Seconds
from calibration.kernels.routing import ROUTED, first_ranks
from calibration.kernels.tables import has_large_cache
from sim.cost.accelerator import Accelerator
from sim.cost.allreduce import AllReduce
from sim.cost.attention import TILE_QUERIES, DecodeAttention, PrefillAttention
from sim.cost.gemm import Gemm
from sim.cost.moe import Experts
from sim.cost.operation import Work
from sim.profiles.calibrated import (
    SLOW_HEADS,
    WIDE_HEAD,
    AllReduceConstants,
    Constant,
    DecodeConstants,
    ExpertConstants,
    GemmConstants,
    HardwareCalibration,
    PrefillConstants,
)
from sim.profiles.hardware import Hardware
from sim.profiles.quantization import bytes_per_element

__all__ = [
    "all_reduce",
    "decode",
    "experts",
    "gemm",
    "latent_decode",
    "latent_prefill",
    "prefill",
]

_ROOFLINE = {
    "compute": Free(0.7, 0.02, 1.5),
    "memory": Free(0.8, 0.05, 1.5),
    "sharpness": Free(2.0, 0.7, 12.0),
    "launch_s": Free(8e-6, 1e-7, 3e-4),
}
_FIXED_ZERO, _FIXED_ONE = Free(0.0, 0.0, 0.0), Free(1.0, 1.0, 1.0)
_NOTHING = Free(1e-3, 1e-3, 1e-3)
_WIDE = Free(1.1, 0.3, 5.0)
_DECODES_BY_COMPUTE = ("Arc-Pro-B60",)
"""Where, over 8 bits, 16 query heads a KV head take a third longer than 8; elsewhere memory is slower in all rows."""
_RESIDENT_SHARPNESS, _OVERFLOWING = 16, 1e6
_CACHE_BYTES = 126 * 2**20
"""Assumed where a profile has no last-level cache; the share of it is fitted anyway."""


def _work(tokens: Any, decodes: Any = 0, context: Any = 0.0) -> Work:
    return Work(tokens, tokens, tokens, decodes, context, (), ())


def _with(hardware: Hardware, **tables: Any) -> Accelerator:
    return Accelerator(hardware, HardwareCalibration.model_construct(**tables))


def gemm(hardware: Hardware, dtype: str) -> Problem:
    """Return the problem of a matrix product with weights of *dtype*."""
    quantises = dtype not in ("bf16", "int4")
    free = {
        **_ROOFLINE,
        "depth": Free(0.2, 1e-3, 5.0),
        "prologue": Free(50.0, 0.1, 2000.0),
        "quantise": Free(1.0, 1e-3, 20.0) if quantises else _FIXED_ZERO,
    }

    def predict(constants: GemmConstants, shapes: pd.DataFrame) -> Seconds:
        table = {dtype: constants, "bf16": constants}
        rates = _with(hardware, gemm=table).gemm(dtype)
        product: Any = Gemm("", 1, _floats(shapes.k), _floats(shapes.n), rates)  # type: ignore[arg-type]
        return np.asarray(product.demand(_work(_floats(shapes.m))).seconds)

    return Problem(GemmConstants, free, predict)


def decode(hardware: Hardware, kv: str, *, wide: bool, ramp: bool = False) -> Problem:
    """Return the problem of grouped decode attention; its compute cannot be told from most tables.

    Without shapes of *wide* heads nothing is known of what they cost. With *ramp* kernels may reach their full rate
    late, which cannot be told from what a cache holds.
    """
    bound = hardware.name in _DECODES_BY_COMPUTE and kv == "fp8"
    free = _decode_free(compute=Free(0.5, 0.02, 1.5) if bound else Free(0.5, 0.5, 0.5))
    free |= {"wide": _WIDE if wide else _FIXED_ONE, "head_s": Free(1e-8, 1e-11, 1e-6)}
    if ramp:
        free |= {"ramp": Free(0.6, 1e-3, 5.0), "ramp_s": Free(1e-5, 1e-8, 1e-4)}
        free |= {"memory": Free(0.8, 0.05, 1.0), "resident_share": _NOTHING, "resident_memory": _FIXED_ONE}

    def predict(constants: DecodeConstants, shapes: pd.DataFrame) -> Seconds:
        width = 2 * _floats(shapes.head_dim)
        kv_heads = _floats(shapes.kv_heads)
        return _decode(
            hardware,
            constants,
            _with(hardware, decode={"bf16": constants}),
            flops=2 * _floats(shapes.heads) * width,
            heads=_floats(shapes.heads),
            kept_bytes=kv_heads * width * bytes_per_element(kv),
            kv_heads=kv_heads,
            sequences=_floats(shapes.batch_size),
            context=_floats(shapes.attended),
            slower=np.where(shapes.head_dim >= WIDE_HEAD, constants.wide.value, 1.0),
        )

    return Problem(DecodeConstants, free, predict)


def latent_decode(hardware: Hardware, kv: str) -> Problem:
    """Return the problem of absorbed latent decode attention: rank 512, rotary width 64."""
    free = _decode_free(compute=Free(0.8, 0.02, 1.5))
    free |= {"wide": _FIXED_ONE, "head_s": Free(1e-8, 1e-11, 1e-6), "at_32_heads": Free(1.1, 1.0, 3.0)}

    def predict(constants: DecodeConstants, shapes: pd.DataFrame) -> Seconds:
        heads = _floats(shapes.num_heads)
        return _decode(
            hardware,
            constants,
            _with(hardware, decode={"bf16": constants}),
            flops=2 * heads * (576 + 512),
            heads=heads,
            kept_bytes=576 * bytes_per_element(kv) * np.ones_like(heads),
            kv_heads=np.ones_like(heads),
            sequences=_floats(shapes.batch_size),
            context=_floats(shapes.kv_len),
            slower=np.where(heads == SLOW_HEADS, constants.at_32_heads.value, 1.0),
        )

    return Problem(DecodeConstants, free, predict)


def prefill(hardware: Hardware, kv: str, *, wide: bool) -> Problem:
    """Return the problem of grouped prefill attention, whose products over 8 bits may be twice as fast as the peak.

    Without shapes of *wide* heads nothing is known of what they cost. The bytes it reads bound it only beside slow
    memory, where a large cache holds those of small shapes.
    """
    own = {"exponent": Free(64.0, 0.1, 512.0), "edge": Free(32.0, 0.1, 256.0), "wide": _WIDE if wide else _FIXED_ONE}
    free = _prefill_free() | own
    if kv == "fp8":
        free |= {"compute": Free(0.6, 0.02, 2.0)}
    if has_large_cache(hardware):
        resident = {"resident_share": Free(0.7, 0.1, 2.0), "resident_time": Free(0.4, 0.01, 1.0)}
        free |= {"memory": Free(0.8, 0.1, 1.1), **resident}

    def predict(constants: PrefillConstants, shapes: pd.DataFrame) -> Seconds:
        heads, kv_heads, head_dim = (_floats(shapes[name]) for name in ("heads", "kv_heads", "head_dim"))
        prompt, window = _floats(shapes.isl), _floats(shapes.window)
        seen = np.where(window > 0, np.minimum(prompt, window), prompt)
        pairs = seen * (seen + 1) / 2 + (prompt - seen) * seen
        pairs += np.maximum(prompt, TILE_QUERIES) * np.where(seen < prompt, 2, 1) * constants.edge.value
        made_bytes, wide = 2.0 * kv_heads * 2 * head_dim, shapes.head_dim >= WIDE_HEAD
        sequences = _floats(shapes.batch_size)
        return _prefill(hardware, constants, heads, 2 * head_dim, made_bytes, sequences, prompt, pairs, wide)

    return Problem(PrefillConstants, free, predict)


def latent_prefill(hardware: Hardware) -> Problem:
    """Return the problem of latent prefill attention: key width 192, value width 128, latent of 576."""

    def predict(constants: PrefillConstants, shapes: pd.DataFrame) -> Seconds:
        heads, prompt = _floats(shapes.num_heads), _floats(shapes.isl)
        width, made_bytes = np.full_like(heads, 320.0), np.full_like(heads, 2.0 * 576)
        pairs, wide = prompt * (prompt + 1) / 2, np.zeros_like(prompt, dtype=np.bool_)
        return _prefill(hardware, constants, heads, width, made_bytes, _floats(shapes.batch_size), prompt, pairs, wide)

    free = _prefill_free() | {"exponent": _FIXED_ZERO, "edge": _FIXED_ZERO, "wide": _FIXED_ONE}
    return Problem(PrefillConstants, free, predict)


def experts(hardware: Hardware, dtype: str, *, alpha: float | None, spread: bool) -> Problem:
    """Return the problem of routed experts of *dtype*, or of weights and inputs such as ``mxfp4+fp8``.

    Routing is balanced, or a power law of exponent *alpha*. Without rows that are *spread* over ranks, nothing is known
    of what that costs.
    """
    free = {
        **_ROOFLINE,
        "row": Free(1.0, 1e-3, 30.0),
        "sort": Free(1.0, 1e-3, 30.0),
        "depth": Free(0.1, 1e-3, 30.0),
        "expert_s": Free(1e-7, 1e-10, 1e-5),
        "spread_s": Free(5e-6, 1e-8, 3e-4) if spread else _FIXED_ZERO,
        "routing_s": Free(5e-6, 1e-8, 2e-3),
    }

    def predict(constants: ExpertConstants, shapes: pd.DataFrame) -> Seconds:
        table = {dtype: constants, "bf16": constants}
        weights, _, activations = dtype.partition("+")
        rates = _with(hardware, experts=table).experts(weights, activations or None)
        touched, crowding = first_ranks(shapes, alpha)
        count, top_k, tokens, ranks = (_floats(shapes[name]) for name in ROUTED)
        inner = _floats(shapes.inter_size) / _floats(shapes.moe_tp_size)
        product: Any = Experts(
            "", 1, count, top_k, _floats(shapes.hidden_size), inner, _floats(shapes.matrices), ranks, 1, rates  # type: ignore[arg-type]
        )
        return np.asarray(product.demand_of(tokens, touched, crowding).seconds)

    return Problem(ExpertConstants, free, predict)


def all_reduce(hardware: Hardware, ranks: int) -> Problem:
    """Return the problem of an all-reduce over *ranks*."""
    free = {
        f"{size}_{name}": bounds
        for size in ("small", "medium", "large")
        for name, bounds in (("link", Free(0.6, 0.002, 100.0)), ("launch_s", Free(8e-6, 1e-8, 1e-2)))
    }
    free |= {f"{size}_below_bytes": Free(2.0**19, 1.0, 2.0**30) for size in ("small", "medium")}
    link_bytes_per_s = _with(hardware).link_bytes_per_s(ranks)

    def predict(constants: AllReduceConstants, shapes: pd.DataFrame) -> Seconds:
        rates = _with(hardware, all_reduce={ranks: constants}, bus_all_reduce={ranks: constants}).link(ranks)
        payload = _floats(shapes.bytes)
        return np.asarray(AllReduce("", 1, ranks, 1.0, rates).demand(_work(payload)).seconds)

    def solve(shapes: pd.DataFrame) -> tuple[dict[str, float], dict[str, float]]:
        return collective.solve(shapes, ranks, link_bytes_per_s)

    return Problem(AllReduceConstants, free, predict, solve)


def _decode_free(compute: Free) -> dict[str, Free]:
    return {
        "compute": compute,
        "memory": Free(0.8, 0.05, 1.1),
        "tile_s": Free(3e-7, 1e-9, 1e-5),
        "launch_s": Free(1e-5, 1e-6, 2e-4),
        "resident_share": Free(0.5, 0.1, 2.0),
        "resident_memory": Free(2.0, 0.3, 10.0),
        "walk_s": Free(1e-10, 1e-15, 1e-6),
        "ramp": _FIXED_ZERO,
        "ramp_s": _FIXED_ZERO,
    }


def _prefill_free() -> dict[str, Free]:
    return {
        "compute": Free(0.6, 0.02, 1.5),
        "memory": Free(0.9, 0.9, 0.9),
        "depth": Free(1.0, 0.01, 20.0),
        "tile_s": Free(3e-7, 1e-9, 1e-3),
        "sharpness": Free(2.0, 0.7, 12.0),
        "launch_s": Free(1e-5, 1e-6, 2e-4),
        "write": Free(1.0, 1e-3, 40.0),
        "resident_share": _FIXED_ONE,
        "resident_time": _FIXED_ONE,
    }


def _decode(
    hardware: Hardware,
    constants: DecodeConstants,
    accelerator: Accelerator,
    *,
    flops: Seconds,
    kept_bytes: Seconds,
    kv_heads: Seconds,
    sequences: Seconds,
    context: Seconds,
    heads: Seconds,
    slower: Seconds,
) -> Seconds:
    """Predict decode attention over a cache that, where it is small, stays in the last-level cache."""
    rates = accelerator.decode("bf16")
    rates = rates._replace(bytes_per_s=rates.bytes_per_s / slower)  # type: ignore[arg-type]
    attention: Any = DecodeAttention("", 1, flops, kept_bytes, kv_heads, rates, None, heads)  # type: ignore[arg-type]
    demand = attention.demand(_work(sequences, sequences, sequences * context))
    resident = _resident(hardware, constants.resident_share, sequences * context * kept_bytes)
    faster = constants.memory.value / constants.resident_memory.value
    memory_s = demand.memory_s * (1 - resident + resident * faster)
    return np.asarray(demand._replace(memory_s=memory_s).seconds)


def _prefill(
    hardware: Hardware,
    constants: PrefillConstants,
    heads: Seconds,
    width: Seconds,
    made_bytes: Seconds,
    sequences: Seconds,
    prompt: Seconds,
    pairs: Seconds,
    wide: Any,
) -> Seconds:
    accelerator = _with(hardware, prefill={"bf16": constants})
    rates, wider = (accelerator.prefill("bf16", head_dim) for head_dim in (0, WIDE_HEAD))
    slower = {name: np.where(wide, getattr(wider, name), getattr(rates, name)) for name in ("flops_per_s", "depth_s")}
    rates = rates._replace(**slower)
    attention: Any = PrefillAttention("", 1, heads, width, made_bytes, made_bytes, rates)  # type: ignore[arg-type]
    rows = np.maximum(prompt, TILE_QUERIES)
    demand = attention.demand_of(
        sequences * pairs, sequences * prompt, sequences * prompt, sequences * rows / TILE_QUERIES, pairs / rows
    )
    moved_bytes = sequences * prompt * (made_bytes + 2.0 * heads * width)
    resident = _resident(hardware, constants.resident_share, moved_bytes) * (1 - constants.resident_time.value)
    written_s = sequences * prompt * made_bytes * rates.write_s
    kept = demand._replace(memory_s=demand.memory_s * (1 - resident), fixed_s=demand.fixed_s - written_s * resident)
    return np.asarray(kept.seconds)


def _resident(hardware: Hardware, share: Constant, moved_bytes: Seconds) -> Seconds:
    """Return how much of *moved_bytes*, read again and again, a *share* of the last-level cache holds.

    One that evicts the least recently used keeps all or nothing: the change is sharp.
    """
    filled = np.minimum(moved_bytes / (share.value * (hardware.l2_bytes or _CACHE_BYTES)), _OVERFLOWING)
    return np.asarray(1 / (1 + filled**_RESIDENT_SHARPNESS))


def _floats(column: pd.Series[Any]) -> Seconds:
    return np.asarray(column, dtype=np.float64)
