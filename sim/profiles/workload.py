"""A workload preset: how long prompts and answers of one kind of traffic are, and how its rate follows the day."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

from pydantic import AfterValidator, Field

from sim.profiles.base import Profile

__all__ = ["HOURS_OF_A_DAY", "HourlyRate", "TokenQuantiles", "WorkloadPreset"]

HOURS_OF_A_DAY = 24


def _is_distribution(table: dict[float, float]) -> dict[float, float]:
    shares = list(table)
    if not shares or shares[0] != 0 or shares[-1] != 1:
        raise ValueError("the quantiles must begin with the share 0 (the shortest) and end with 1 (the longest)")
    for (low, short), (high, long) in pairwise(table.items()):
        if high <= low or long < short:
            raise ValueError(f"quantiles must rise, but {low:g}: {short:g} is followed by {high:g}: {long:g}")
    return table


TokenQuantiles = Annotated[
    dict[Annotated[float, Field(ge=0, le=1)], Annotated[float, Field(ge=1)]],
    AfterValidator(_is_distribution),
]
"""Inverse distribution of a length: share of requests that are at most so long -> length [tokens], linear between."""


def _averages_above_zero(rates: tuple[float, ...]) -> tuple[float, ...]:
    if not sum(rates):
        raise ValueError("at least one hour needs a rate above 0")
    return rates


HourlyRate = Annotated[
    tuple[Annotated[float, Field(ge=0)], ...],
    Field(min_length=HOURS_OF_A_DAY, max_length=HOURS_OF_A_DAY),
    AfterValidator(_averages_above_zero),
]
"""Request rate in each hour of a day, from midnight, in any unit: only their ratio counts."""


class WorkloadPreset(Profile):
    """Lengths of one kind of traffic, measured on a published trace."""

    description: str = Field(description="What kind of traffic it is.")
    input_tokens: TokenQuantiles = Field(description="Quantiles of the prompt length [tokens].")
    output_tokens: TokenQuantiles = Field(description="Quantiles of the answer length [tokens].")
    rank_correlation: float = Field(
        0.0, gt=-1, lt=1, description="Spearman's rank correlation of prompt and answer length."
    )
    hourly_rate: HourlyRate | None = Field(
        None, description="Rate in each hour of the day over its mean; missing: not known."
    )
