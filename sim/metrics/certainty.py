"""How sure the figures of a run are, and from what that is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sim.metrics.intervals import SAMPLING_ONLY, Interval
from sim.metrics.model_error import ModelError, Spread, with_draws, with_model_error

__all__ = ["Certainty", "certainty_of"]


@dataclass(frozen=True, slots=True)
class Certainty:
    """The 90 % confidence intervals by key of a result, in the unit of the key, and what they hold in a sentence.

    *draws* says what the intervals are made of where constants were drawn; None: none were.
    """

    intervals: dict[str, Interval]
    statement: str = ""
    draws: dict[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it under its public keys."""
        drawn = {} if self.draws is None else {"draws": self.draws}
        return {"intervals": {key: list(interval) for key, interval in self.intervals.items()}, **drawn}


def certainty_of(
    values: Mapping[str, float], sampling: dict[str, Interval], error: ModelError | None, spread: Spread | None
) -> Certainty:
    """Return how sure *values* are.

    Parameters
    ----------
    values
        Latencies [ms] and rates, by key of a result.
    sampling
        Intervals that other requests of the same traffic would stay in, as far as they are known.
    error, spread
        How far such runs were off, and what draws of the constants say; None: not known.
    """
    if spread is not None:
        draws = {"count": spread.draws, "factors": spread.parts(error)}
        return Certainty(with_draws(spread, error, values), spread.statement(error), draws)
    intervals = sampling if error is None else with_model_error(error, values, sampling)
    statement = SAMPLING_ONLY if error is None else error.statement
    return Certainty(intervals, statement if intervals else "")
