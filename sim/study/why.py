"""Where the time of a run goes: into which operations of an iteration, and into waiting for what."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sim.batch import Blocked
from sim.metrics.rows import StrideRows
from sim.simulate import ReadyPool
from sim.simulate.time_use import sampled_batches
from sim.study.played import Played

__all__ = ["OPERATIONS", "WAITS", "Anatomy", "anatomy_of"]

OPERATIONS = {
    "attention_gemm": "matrix products",
    "mlp_gemm": "matrix products",
    "head": "matrix products",
    "router": "matrix products",
    "attention_decode": "attention",
    "attention_prefill": "attention",
    "all_reduce": "all-reduce",
    "experts": "experts",
    "expert_exchange": "exchange between experts",
    "rebalancing": "rebalancing of experts",
    "elementwise": "norms and activations",
    "state": "recurrent state",
    "sampling": "sampling",
    "pipeline": "passing between stages",
    "host": "the host",
}
"""Operations of an iteration, in the words of a report."""
WAITS = {
    Blocked.MAX_NUM_SEQS: "max_num_seqs",
    Blocked.KV_BLOCKS: "KV blocks",
    Blocked.TOKEN_BUDGET: "the token budget",
    Blocked.BATCHING: "the static batch",
    Blocked.NO: "the iteration to end",
}
"""What the queue waits for."""


@dataclass(frozen=True, slots=True)
class Anatomy:
    """The mean iteration and the mean request of a run.

    Attributes
    ----------
    iteration_s
        Time of an iteration [s].
    operations_s
        Its parts by `OPERATIONS` [s]; empty: not known.
    queue_s, prompt_s
        From arrival to the first iteration, and from there to the first token, of a mean request [s].
    waits
        Share of the busy time in which somebody waits, by `WAITS`.
    running
        Requests in an iteration.
    kv_tokens
        Tokens that the KV caches of all replicas hold; None: not known.
    """

    iteration_s: float
    operations_s: Mapping[str, float]
    queue_s: float
    prompt_s: float
    waits: Mapping[str, float]
    running: float
    kv_tokens: int | None


def anatomy_of(run: Played) -> Anatomy:
    """Return where the time of *run* goes."""
    strides, busy_s = run.strides, float(run.strides.duration_s.sum())
    iterations = int(strides.iterations.sum())
    queue_s, ttft_s = run.requests["queue_s"], run.requests["ttft_s"]
    return Anatomy(
        iteration_s=busy_s / iterations if iterations else 0.0,
        operations_s={} if run.pools is None else _operations_s(run.pools, strides, iterations),
        queue_s=_mean(queue_s),
        prompt_s=_mean(ttft_s - queue_s),
        waits=_waits(strides, busy_s),
        running=float(np.dot(strides.running, strides.duration_s)) / busy_s if busy_s else 0.0,
        kv_tokens=None if run.pools is None else sum(map(_kv_tokens, run.pools)),
    )


def _operations_s(pools: Sequence[ReadyPool], strides: StrideRows, iterations: int) -> dict[str, float]:
    """Return the seconds of each operation in a mean iteration, from samples spread evenly over the busy time."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for pool in pools:
        own, cost = pool.context(strides).strides(strides), pool.setup.engine.cost
        busy_s = float(own.duration_s.sum())
        for batch, weight in sampled_batches(own, cost):
            parts = cost.breakdown(batch)
            for name, part_s in parts.items():
                seconds[OPERATIONS.get(name, name)] += busy_s * weight * part_s / sum(parts.values())
    return {name: value / iterations for name, value in seconds.items()}


def _waits(strides: StrideRows, busy_s: float) -> dict[str, float]:
    queued = strides.waiting > 0
    waited_s = np.bincount(strides.blocked[queued], strides.duration_s[queued], minlength=len(Blocked))
    return {words: float(waited_s[code]) / busy_s for code, words in WAITS.items() if waited_s[code]}


def _kv_tokens(pool: ReadyPool) -> int:
    return pool.replicas * pool.setup.engine.room_tokens


def _mean(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")
