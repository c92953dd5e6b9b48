"""Where the time of iterations goes: by what bounds it, by operation, and to experts that are loaded unevenly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["TimeUse", "combined", "mean_shares"]

Shares = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class TimeUse:
    """Shares of the iteration time; each mapping sums to 1, or is empty where nothing is known.

    Attributes
    ----------
    by_resource
        By what bounds it: ``compute``, ``memory``, ``link``, ``latency``, ``host``.
    by_operation
        By the operations of the cost model, such as ``attention_decode``.
    imbalance
        Part that the rows of the most loaded rank beyond the mean of all cost; None where no load of experts is given.
    """

    by_resource: Shares = field(default_factory=dict)
    by_operation: Shares = field(default_factory=dict)
    imbalance: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it under its public keys."""
        uneven = {} if self.imbalance is None else {"imbalance": self.imbalance}
        return {"by_resource": dict(self.by_resource), "by_operation": dict(self.by_operation), **uneven}


def combined(uses: Sequence[TimeUse], weights: Sequence[float]) -> TimeUse:
    """Return the use of several pools together, each with the *weight* of its busy time."""
    if len(uses) == 1 or not sum(weights):
        return uses[0]
    lost = [(use.imbalance, weight) for use, weight in zip(uses, weights, strict=True) if use.imbalance is not None]
    return TimeUse(
        mean_shares([use.by_resource for use in uses], weights),
        mean_shares([use.by_operation for use in uses], weights),
        sum(share * weight for share, weight in lost) / sum(weights) if lost else None,
    )


def mean_shares(shares: Sequence[Shares], weights: Sequence[float]) -> dict[str, float]:
    """Return the weighted mean of *shares*; what one of them lacks is 0 there."""
    total = sum(weights)
    mean: dict[str, float] = {}
    for each, weight in zip(shares, weights, strict=True):
        for name, share in each.items():
            mean[name] = mean.get(name, 0.0) + share * weight / total
    return mean
