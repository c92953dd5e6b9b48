"""Where the time of a run's iterations went, asked of the cost model for a sample of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from sim.batch import Batch, Chunk
from sim.cost import StepCost
from sim.metrics.rows import StrideRows
from sim.metrics.time_use import TimeUse, mean_shares

__all__ = ["batch_of", "prefill_share", "sampled_batches", "time_use_of"]

_SAMPLES = 200


def time_use_of(strides: StrideRows, cost: StepCost) -> TimeUse:
    """Return the use of the iteration time, from up to 200 strides spread evenly over the busy time."""
    if not len(strides.start_s):
        return TimeUse()
    batches, weights = zip(*sampled_batches(strides, cost), strict=True)
    seconds = [cost.breakdown(batch) for batch in batches]
    wholes_s = [sum(each.values()) for each in seconds]
    lost_s = [cost.imbalance_s(batch) for batch in batches]
    operations = [_parts(each, whole_s) for each, whole_s in zip(seconds, wholes_s, strict=True)]
    lost = [(part_s or 0.0) / whole_s for part_s, whole_s in zip(lost_s, wholes_s, strict=True)]
    return TimeUse(
        mean_shares([cost.limits(batch) for batch in batches], weights),
        mean_shares(operations, weights),
        None if lost_s[0] is None else float(np.average(lost, weights=weights)),
    )


def _parts(seconds: dict[str, float], whole_s: float) -> dict[str, float]:
    return {name: part_s / whole_s for name, part_s in seconds.items()}


def prefill_share(strides: StrideRows, cost: StepCost) -> float:
    """Return the share of the iteration time that prompts cause: what iterations would not take without them."""
    share = 0.0
    for batch, weight in sampled_batches(strides, cost):
        if batch.chunks:
            sampled = batch.decodes * batch.tokens_each
            alone = replace(batch, chunks=(), sampled=sampled, masks=min(batch.masks, round(sampled)))
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
        yield batch_of(strides, row, cost), count / _SAMPLES


def batch_of(strides: StrideRows, row: int, cost: StepCost) -> Batch:
    """Return what the middle iteration of a stride computes; its chunks taken as equal and without a past."""
    chunks, tokens = int(strides.chunks[row]), int(strides.prefill_tokens[row])
    decodes = int(strides.decodes[row])
    context = int(strides.decode_context_tokens[row]) + decodes * (int(strides.iterations[row]) // 2)
    return Batch(
        chunks=tuple(Chunk(tokens // chunks, 0) for _ in range(chunks)),
        decodes=decodes,
        decode_context_tokens=context,
        decode_window_tokens=tuple(min(context, decodes * window) for window in cost.windows),
        sampled=decodes * cost.tokens_each + chunks,
        masks=int(strides.masks[row]),
        tokens_each=cost.tokens_each,
    )
