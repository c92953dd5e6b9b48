"""The run as a time series: what each replica held and emitted, in windows of equal length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.metrics.instances import InstanceRows, InstanceState
from sim.metrics.rows import RequestRows, StrideRows

__all__ = ["Timeline", "timeline_of"]

Floats = NDArray[np.float64]

_MOST_WINDOWS = 1000
_MOST_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Timeline:
    """One row a window and replica, replica by replica: the window's start, and averages over its time.

    *ready* is the share of the window in which the replica was ready; None where replicas do not come and go.
    """

    time_s: Floats
    replica: NDArray[np.int64]
    running: Floats
    waiting: Floats
    kv_utilization: Floats
    output_tok_s: Floats
    ready: Floats | None = None


def timeline_of(
    requests: RequestRows, strides: StrideRows, kv_blocks: Sequence[float], lives: InstanceRows | None = None
) -> Timeline:
    """Average the strides over windows: a thousand, or fewer where many replicas would make too many rows.

    *kv_blocks* is the pool of each replica, by its number. Output tokens of a stride are spread evenly over its time.
    """
    replicas = np.unique(strides.replica)
    windows = max(1, min(_MOST_WINDOWS, _MOST_ROWS // max(1, len(replicas))))
    end_s = float((strides.start_s + strides.duration_s).max(initial=0.0))
    edges_s = np.linspace(0.0, end_s, windows + 1)
    series = np.array([_series(requests, strides, replica, edges_s) for replica in replicas])
    running, waiting, blocks, tokens = series.reshape(-1, 4, windows).transpose(1, 0, 2).reshape(4, -1)
    pool = np.repeat(np.where(np.asarray(kv_blocks) > 0, kv_blocks, np.nan)[replicas], windows)
    return Timeline(
        time_s=np.tile(edges_s[:-1], len(replicas)),
        replica=np.repeat(replicas, windows),
        running=running,
        waiting=waiting,
        kv_utilization=blocks / pool,
        output_tok_s=tokens,
        ready=None if lives is None else np.concatenate([_ready(lives, replica, edges_s) for replica in replicas]),
    )


def _ready(lives: InstanceRows, replica: int, edges_s: Floats) -> Floats:
    """Return the share of each window in which *replica*, or the one that it is a rank of, was ready."""
    own = lives.replica == lives.replica[lives.replica <= replica].max()
    ready = lives.where(own & (lives.state == InstanceState.READY))
    spans = zip(ready.from_s, ready.to_s, strict=True)
    before_s = sum((np.clip(edges_s - from_s, 0, to_s - from_s) for from_s, to_s in spans), np.zeros_like(edges_s))
    share: Floats = np.diff(before_s) / np.diff(edges_s)
    return share


def _series(requests: RequestRows, strides: StrideRows, replica: int, edges_s: Floats) -> Floats:
    """Return running, waiting, blocks and tokens/s of one *replica* in each window."""
    mine = np.flatnonzero(strides.replica == replica)
    mine = mine[np.argsort(strides.start_s[mine], kind="stable")]
    start_s, duration_s = strides.start_s[mine], strides.duration_s[mine]
    window_s = np.diff(edges_s)
    moment_s = np.maximum.accumulate(np.column_stack([start_s, start_s + duration_s]).ravel())

    def in_windows(amount: Floats) -> Floats:
        before = np.concatenate([[0.0], np.cumsum(amount)])
        at_moments = np.column_stack([before[:-1], before[1:]]).ravel()
        return np.diff(np.interp(edges_s, moment_s, at_moments))

    levels = (strides.running[mine], strides.waiting[mine], strides.kv_blocks[mine])
    first, _ = np.histogram(requests.first_token_s[requests.replica == replica], edges_s)
    tokens = in_windows(strides.emitted[mine].astype(np.float64)) + first
    with np.errstate(divide="ignore", invalid="ignore"):  # a run of no length has windows of no length
        return np.array([*(in_windows(level * duration_s) for level in levels), tokens]) / window_s
