"""How many replicas more than are needed keep enough of them ready."""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import accumulate

__all__ = ["enough_ready", "spares_for"]

_MOST_SPARES = 1_000


def enough_ready(needed: int, replicas: int, mtbf_s: float, down_s: float, crews: int | None = None) -> float:
    """Return the share of the time in which *needed* of *replicas* are ready.

    Each is lost at a constant rate, once in *mtbf_s* [s] of being ready, by itself, and is away for *down_s* [s] on
    average. Without *crews* all that are lost are repaired at once, and the number of those ready is binomial, however
    repair times are distributed (Palm's theorem). With so many *crews* the others wait: the machine repair model, for
    exponential times (e.g. D. Gross et al., "Fundamentals of Queueing Theory", section on finite-source queues).
    """
    if needed > replicas:
        return 0.0
    lost = down_s / mtbf_s
    crews = replicas if crews is None else crews
    steps = (math.log((replicas - down) * lost / min(down + 1, crews)) for down in range(replicas))
    weights = list(accumulate(steps, initial=0.0))  # logarithms, since a hundred factors underflow
    largest = max(weights)
    chances = [math.exp(weight - largest) for weight in weights]
    return sum(chances[: replicas - needed + 1]) / sum(chances)


def spares_for(needed: int, share: float, mtbf_s: float, down_s: float, crews: int | None = None) -> int:
    """Return how many replicas beside the *needed* ones keep these ready for a *share* of the time.

    Raise a `ValueError` where not even 1,000 do.
    """

    def enough(spares: int) -> bool:
        return enough_ready(needed, needed + spares, mtbf_s, down_s, crews) >= share

    if not enough(_MOST_SPARES):
        who = f"{_MOST_SPARES:,} spares" if crews is None else f"{crews} repair crews"
        raise ValueError(f"{who} cannot keep {needed} replicas ready for {share:.4%} of the time")
    return bisect_left(range(_MOST_SPARES), True, key=enough)
