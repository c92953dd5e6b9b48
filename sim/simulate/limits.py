"""What an average moment of a run waits for, and works on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from sim.batch import Batch, Chunk
from sim.cost import StepCost
from sim.metrics.rows import StrideRows

__all__ = ["batch_of", "prefill_share", "sampled_batches", "time_shares"]

_SAMPLES = 200


def time_shares(strides: StrideRows, cost: StepCost) -> dict[str, float]:
    """Return the share of the iteration time by resource, from up to 200 strides spread evenly over the busy time."""
    shares: dict[str, float] = {}
    for batch, weight in sampled_batches(strides, cost):
        for resource, share in cost.limits(batch).items():
            shares[resource] = shares.get(resource, 0.0) + share * weight
    return shares


def prefill_share(strides: StrideRows, cost: StepCost) -> float:
    """Return the share of the iteration time that prompts cause: what iterations would not take without them."""
    share = 0.0
    for batch, weight in sampled_batches(strides, cost):
        if batch.chunks:
            alone = replace(batch, chunks=(), sampled=batch.decodes)
            answers_s = cost.pace(alone).first_s if batch.decodes else 0.0
            share += weight * max(0.0, 1 - answers_s / cost.pace(batch).first_s)
    return share


def sampled_batches(strides: StrideRows, cost: StepCost) -> Iterator[tuple[Batch, float]]:
    """Yield up to 200 batches spread evenly over the busy time, with the share of it that each stands for."""
    if not len(strides.start_s):
        return
    busy_s = np.cumsum(strides.duration_s)
    at_s = (np.arange(_SAMPLES) + 0.5) / _SAMPLES * busy_s[-1]
    rows, counts = np.unique(np.searchsorted(busy_s, at_s), return_counts=True)
    for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
        yield batch_of(strides, row, cost.windows), count / _SAMPLES


def batch_of(strides: StrideRows, row: int, windows: tuple[int, ...]) -> Batch:
    """Return what the middle iteration of a stride computes; its chunks taken as equal and without a past."""
    chunks, tokens = int(strides.chunks[row]), int(strides.prefill_tokens[row])
    decodes = int(strides.decodes[row])
    context = int(strides.decode_context_tokens[row]) + decodes * (int(strides.iterations[row]) // 2)
    return Batch(
        chunks=tuple(Chunk(tokens // chunks, 0) for _ in range(chunks)),
        decodes=decodes,
        decode_context_tokens=context,
        decode_window_tokens=tuple(min(context, decodes * window) for window in windows),
        sampled=decodes + chunks,
    )
