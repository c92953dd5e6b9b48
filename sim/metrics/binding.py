"""What limits a run, in a word for programs and in a sentence for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sim.metrics.rows import Blocked, StrideRows

__all__ = ["Binding", "binding_limit"]

_BLOCKED = {
    Blocked.MAX_NUM_SEQS: ("max_num_seqs", "the limit on running sequences"),
    Blocked.KV_BLOCKS: ("kv_blocks", "KV-cache blocks"),
    Blocked.TOKEN_BUDGET: ("max_num_batched_tokens", "the token budget of an iteration"),
    Blocked.BATCHING: ("batching", "the static batch"),
}
_RESOURCE = {
    "compute": "arithmetic",
    "memory": "memory bandwidth",
    "link": "communication between GPUs",
    "latency": "the launch of kernels and the latency of links",
    "host": "the host's work between iterations",
}
_LINK_MATTERS = 0.80
_BLOCKED_MATTERS = 0.10
_IDLE_MATTERS = 0.50


@dataclass(frozen=True, slots=True)
class Binding:
    """What limits a run in a word and a sentence, and the share of its time that replicas had no work."""

    limit: str
    sentence: str
    idle_share: float


def binding_limit(
    strides: StrideRows, replica_time_s: float, time_shares: Mapping[str, float], link_utilization: float = 0.0
) -> Binding:
    """Find what limits a run.

    First the link between prefill and decode replicas, if it is busy for four fifths of the time; then what holds back
    the queue, if it does for a tenth of the time; else the demand, if replicas idle for half of it; else the largest of
    *time_shares*, the shares of iteration time by resource (``compute``, ``memory``, ``link``, ``latency``, ``host``),
    which may be empty.

    Parameters
    ----------
    replica_time_s
        Length of the run times the number of replicas [s].
    """
    duration_s = strides.duration_s
    queued = strides.waiting > 0
    idle = max(0.0, 1 - float(duration_s.sum()) / replica_time_s) if replica_time_s else 1.0
    if link_utilization >= _LINK_MATTERS:
        words = f"the link between prefill and decode: it is busy {link_utilization:.0%} of the time"
        return Binding("kv_link", words, idle)
    blocked_s = np.bincount(strides.blocked[queued], duration_s[queued], minlength=len(Blocked))
    worst = max(_BLOCKED, key=lambda code: float(blocked_s[code]))
    share = float(blocked_s[worst]) / replica_time_s if replica_time_s else 0.0
    if share >= _BLOCKED_MATTERS:
        limit, words = _BLOCKED[worst]
        return Binding(limit, f"{words}: the queue waits for it {share:.0%} of the time", idle)
    if idle >= _IDLE_MATTERS:
        return Binding("demand", f"demand: replicas are idle {idle:.0%} of the time", idle)
    return _largest(time_shares, idle)


def _largest(time_shares: Mapping[str, float], idle: float) -> Binding:
    if not time_shares:
        return Binding("iteration_time", "the time of an iteration", idle)
    limit = max(time_shares, key=lambda name: time_shares[name])
    words = _RESOURCE.get(limit, limit)
    return Binding(limit, f"{words}: {time_shares[limit]:.0%} of iteration time", idle)
