"""Whether a run reached a steady state, and from when on.

The series that decides is the number of requests that each arrival finds in the system: it feels a batch that
still fills as well as a queue that grows, whatever the lengths of the answers, and it ends with the arrivals,
so the drain of a finite run does not disturb it. A closed loop starts with its first wave and stays constant
from there.

The warm-up is cut by MSER-5: K. P. White, "An effective truncation heuristic for bias reduction in simulation
output", Simulation 69 (1997) 323-334, on means of five as in White, Cobb and Spratt, Winter Simulation
Conference 2000, 755-760. A cut in the second half is not to be taken (K. Hoad, S. Robinson and R. Davies,
"Automating warm-up length estimation", Journal of the Operational Research Society 61 (2010) 1389-1403), but
where neighbours in the series are strongly correlated it also comes by chance. So a run cut that late is
overloaded or too short if its load rises throughout; any other is cut at the best place in its first half.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sim.metrics.rows import RequestRows

__all__ = ["Steadiness", "judge_steadiness", "mser5"]

Floats = NDArray[np.float64]

_FEWEST_REQUESTS = 50  # ten means of five
_TURNOVERS = 5  # requests served, in multiples of those in the system at once
_BATCHES = 10
_RISING_TAU = 0.6  # Kendall's tau of ten batches: one chance in a hundred
_QUEUE_GROWTH = 1.5
_QUEUE_SHARE = 0.05  # of the end-to-end latency; less is the wait for an iteration's end, no queue


@dataclass(frozen=True, slots=True)
class Steadiness:
    """The verdict on a run, in a word and in a sentence.

    *warm_up_requests* arrivals, those before *warm_up_s* [s from the start], belong to the warm-up.
    """

    verdict: Literal["steady", "overloaded", "too short", "offline"]
    statement: str
    warm_up_requests: int = 0
    warm_up_s: float = 0.0


_OFFLINE = Steadiness(
    "offline",
    "Offline: all requests arrive at once, so throughput is that of the whole job, "
    "and latencies tell the place in the queue.",
)
_UNSETTLED = Steadiness("too short", "Too short: the number of requests in the system rises to the end.")


def mser5(series: NDArray[Any], most: float = 1.0) -> int:
    """Return how many leading values to cut so that the mean of the rest has the least standard error.

    The cut *d* of the n means of five minimises ``sum((z - mean(z))**2) / (n - d)**2`` over those kept. It
    keeps five means at least, and cuts the share *most* at most.
    """
    means = series[: len(series) // 5 * 5].astype(np.float64).reshape(-1, 5).mean(axis=1)
    cuts = min(int(most * len(means)), len(means) - 5) + 1
    if cuts <= 1:
        return 0
    kept = np.arange(len(means), 0.0, -1.0)
    centred = means - means.mean()
    sums, squares = np.cumsum(centred[::-1])[::-1], np.cumsum(centred[::-1] ** 2)[::-1]
    return 5 * int(np.argmin(((squares - sums**2 / kept) / kept**2)[:cuts]))


def judge_steadiness(requests: RequestRows) -> Steadiness:
    """Tell from the answered requests whether a run settled, was overloaded or was too short to tell."""
    taken = np.flatnonzero(~np.isnan(requests.last_token_s))
    taken = taken[np.argsort(requests.arrival_s[taken], kind="stable")]
    count, arrival_s = len(taken), requests.arrival_s[taken]
    if count > 1 and arrival_s[0] == arrival_s[-1]:
        return _OFFLINE
    if count < _FEWEST_REQUESTS:
        return _too_short(count, _FEWEST_REQUESTS)
    return _judged(arrival_s, requests.last_token_s[taken], requests.queue_s[taken])


def _judged(arrival_s: Floats, end_s: Floats, queue_s: Floats) -> Steadiness:
    count = len(arrival_s)
    found = np.arange(count) - np.searchsorted(np.sort(end_s), arrival_s, side="right")
    if mser5(found) > count / 2 and _rises(found):
        return _overloaded(arrival_s, end_s) if _queue_grows(queue_s, end_s - arrival_s) else _UNSETTLED
    cut = mser5(found, most=0.5)
    at_once = (end_s - arrival_s).sum() / (arrival_s[-1] - arrival_s[0])  # Little's law
    needed = _TURNOVERS * float(at_once)
    if count < needed:
        return _too_short(count, needed)
    return Steadiness("steady", f"Steady after {cut:,} of {count:,} requests.", cut, float(arrival_s[cut]))


def _rises(series: NDArray[Any]) -> bool:
    """Tell whether batch means rise through the run, by Kendall's tau."""
    means = _batch_means(series)
    earlier, later = np.triu_indices(len(means), 1)
    return bool(np.sign(means[later] - means[earlier]).mean() >= _RISING_TAU)


def _queue_grows(queue_s: Floats, e2e_s: Floats) -> bool:
    """Tell whether the wait for admission rises through the run, clearly, and to a length that matters."""
    wait_s = _batch_means(queue_s)
    early_s, late_s = wait_s[2:4].mean(), wait_s[-2:].mean()
    matters = late_s >= max(_QUEUE_GROWTH * early_s, _QUEUE_SHARE * e2e_s.mean())
    return bool(matters and _rises(queue_s))


def _batch_means(series: NDArray[Any]) -> Floats:
    return np.array([batch.mean() for batch in np.array_split(series, _BATCHES)])


def _too_short(count: int, needed: float) -> Steadiness:
    return Steadiness("too short", f"Too short: {count:,} requests; this load takes {needed:,.0f} or more.")


def _overloaded(arrival_s: Floats, end_s: Floats) -> Steadiness:
    """Compare the rate at which requests came with that at which they were served.

    The start, where the first answers are not ready yet, and the end, where nobody comes any more, make the latter
    look lower than it is; so it is the higher one of that until the last arrival and that until the last answer.
    """
    count, start_s, last_s = len(arrival_s), arrival_s[0], arrival_s[-1]
    offered = count / (last_s - start_s)
    served = max(np.count_nonzero(end_s <= last_s) / (last_s - start_s), count / (end_s.max() - start_s))
    return Steadiness(
        "overloaded",
        f"Overloaded: {offered:.3g} requests/s arrive and {served:.3g} are served, so the queue grows "
        "to the end, and latencies tell the length of the run.",
    )
