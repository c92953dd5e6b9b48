"""90 % confidence intervals of means and percentiles, from batch means.

They cover sampling error only: what another seed of the same traffic would change. How well the model fits
the real machine is another matter, which they do not know.

After the warm-up the run is cut into ten batches that follow each other; each gives its own estimate, and the
spread of the ten tells the error of the whole by Student's t with nine degrees of freedom. Ten batches rather
than more, since long ones are nearly independent: B. Schmeiser, "Batch size effects in the analysis of
simulation output", Operations Research 30 (1982) 556-568. The interval is centred on the estimate from all
requests, as batches estimate far percentiles with a bias. A percentile with less than one request of each
batch beyond it gets no interval.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from sim.metrics.gaps import gaps_between
from sim.metrics.latency import PERCENTILES, Distribution, Sample
from sim.metrics.rows import RequestRows, StrideRows

__all__ = ["BATCHES", "SAMPLING_ONLY", "latency_intervals"]

BATCHES = 10
_STUDENT_T = 1.8331  # 95 % quantile, 9 degrees of freedom; e.g. NIST/SEMATECH e-Handbook, table 1.3.6.7.2
SAMPLING_ONLY = "intervals cover sampling error only, not model error"

Interval = tuple[float, float]
Statistic = Callable[[Distribution], float]


def latency_intervals(
    requests: RequestRows, strides: StrideRows, latency: Mapping[str, Distribution], from_s: float
) -> dict[str, Interval]:
    """Return ``{key of a result: (low, high)}`` in milliseconds, from what arrives or starts after *from_s*.

    *latency* holds the distributions of the whole run, the centres of the intervals.
    """
    batches = _batches(requests, strides, from_s)
    return {
        f"{prefix}_{name}_ms": interval
        for name, whole in latency.items()
        for prefix, (percent, statistic) in _statistics().items()
        if (interval := _interval(statistic, whole, batches[name], percent))
    }


def _statistics() -> dict[str, tuple[float, Statistic]]:
    """Return by prefix the percentile that the batches must resolve [%], and the statistic."""

    def percentile(percent: float) -> Statistic:
        return lambda latency: latency.percentile(percent)

    by_percent = {prefix: (percent, percentile(percent)) for prefix, percent in PERCENTILES.items()}
    return {"mean": (0.0, lambda latency: latency.mean_s), **by_percent}


def _interval(
    statistic: Statistic, whole: Distribution, batches: list[Distribution], percent: float
) -> Interval | None:
    if min(batch.count for batch in batches) * (1 - percent / 100) < 1:
        return None
    spread_s = float(np.std([statistic(batch) for batch in batches], ddof=1))
    centre_s, half_s = statistic(whole), _STUDENT_T * spread_s / math.sqrt(BATCHES)
    return 1e3 * max(0.0, centre_s - half_s), 1e3 * (centre_s + half_s)


def _batches(requests: RequestRows, strides: StrideRows, from_s: float) -> dict[str, list[Distribution]]:
    """Return the batches of each latency: equal numbers of requests, and for ITL equal times."""
    order = np.argsort(requests.arrival_s, kind="stable")
    order = order[(requests.arrival_s[order] >= from_s) & requests.completed[order]]
    times_s = {"ttft": requests.ttft_s, "tpot": requests.tpot_s, "e2el": requests.e2e_s}
    batches = {name: _in_turn(time_s[order]) for name, time_s in times_s.items()}
    to_s = float(requests.arrival_s.max(initial=from_s))
    edges_s = np.linspace(from_s, to_s, BATCHES + 1).tolist()
    batches["itl"] = [gaps_between(strides, low, high) for low, high in itertools.pairwise(edges_s)]
    return batches


def _in_turn(times_s: NDArray[np.float64]) -> list[Distribution]:
    return [Sample.of(part) for part in np.array_split(times_s[~np.isnan(times_s)], BATCHES)]
