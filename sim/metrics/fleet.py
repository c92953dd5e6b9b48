"""What came of the replicas of a fleet that changes: what they cost, how many were ready, and what their losses did."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.metrics.instances import Floats, InstanceRows, InstanceState
from sim.metrics.pools import PoolContext
from sim.metrics.ratio import ratio
from sim.metrics.rows import RequestRows

__all__ = ["FleetSummary", "degraded", "summarise_fleet"]


@dataclass(frozen=True, slots=True)
class FleetSummary:
    """A fleet in numbers.

    Attributes
    ----------
    gpu_hours, instance_hours
        Paid time of accelerators and of replicas: starting, ready or draining [h].
    availability
        Of the time in which replicas were starting, ready or down, the share in which they were ready.
    scale_events
        How often a replica was started or drained.
    replica_losses, retries, lost_tokens
        Replicas that were lost, requests sent to another one for it, and the tokens whose KV was lost.
    degraded_s, degraded_good_share
        Time from each loss until as many replicas were ready again [s], and of the requests that came in it the share
        that was answered, within every bound of the SLO if there is one.
    """

    gpu_hours: float
    instance_hours: float
    ready_replicas_mean: float
    ready_replicas_min: int
    availability: float
    scale_events: int
    replica_losses: int
    retries: int
    lost_tokens: int
    degraded_s: float
    degraded_good_share: float

    def as_dict(self) -> dict[str, Any]:
        """Return it under its public keys."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def summarise_fleet(
    pools: Sequence[PoolContext], requests: RequestRows, good: NDArray[np.bool_]
) -> FleetSummary | None:
    """Return what came of the replicas; None where they do not come and go."""
    lives = pools[0].lives
    if lives is None:
        return None
    starting, ready, draining, down = (lives.time_s(state) for state in InstanceState)
    end_s = float(lives.to_s.max(initial=0.0))
    windows = degraded(lives)
    hit = _within(requests.arrival_s, windows)
    counts = np.bincount(lives.state, minlength=len(InstanceState))
    return FleetSummary(
        gpu_hours=sum(pool.paid_gpus(end_s) for pool in pools) * end_s / 3600,
        instance_hours=(starting + ready + draining) / 3600,
        ready_replicas_mean=ratio(ready, end_s),
        ready_replicas_min=_least_ready(lives, end_s),
        availability=ratio(ready, starting + ready + down),
        scale_events=int(counts[InstanceState.STARTING] + counts[InstanceState.DRAINING]),
        replica_losses=int(counts[InstanceState.DOWN]),
        retries=int(requests.retries.sum()),
        lost_tokens=int(requests.lost_tokens.sum()),
        degraded_s=float(sum(to_s - from_s for from_s, to_s in windows)),
        degraded_good_share=float(good[hit].mean()) if hit.any() else math.nan,
    )


def degraded(lives: InstanceRows) -> list[tuple[float, float]]:
    """Return the times from each loss of a ready replica until as many are ready as before [s], merged and rising."""
    times_s, ready = lives.number(InstanceState.READY)
    lost_s = np.unique(lives.from_s[lives.state == InstanceState.DOWN])
    windows: list[tuple[float, float]] = []
    for from_s in lost_s.tolist():
        place = int(np.searchsorted(times_s, from_s))
        before = int(ready[place - 1]) if place else 0
        if place == len(times_s) or ready[place] >= before:
            continue
        enough = np.flatnonzero(ready[place:] >= before)
        to_s = float(times_s[place + enough[0]]) if len(enough) else float(lives.to_s.max())
        if windows and from_s <= windows[-1][1]:
            windows[-1] = windows[-1][0], max(to_s, windows[-1][1])
        else:
            windows.append((from_s, to_s))
    return windows


def _within(time_s: Floats, windows: list[tuple[float, float]]) -> NDArray[np.bool_]:
    """Return which times lie in one of the *windows*, which rise and do not overlap."""
    edges_s = np.array(windows).ravel()
    return np.equal(np.searchsorted(edges_s, time_s, side="right") % 2, 1)


def _least_ready(lives: InstanceRows, end_s: float) -> int:
    times_s, ready = lives.number(InstanceState.READY)
    before_end = ready[times_s < end_s]
    return int(before_end.min(initial=len(lives.replica))) if len(before_end) and times_s[0] == 0 else 0
