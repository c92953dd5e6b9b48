"""What a deployment gives a user against what it gives the owner, at every load."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sim.search.space import Space
from sim.workload.arrivals.base import Slots

__all__ = ["Pareto"]


class Pareto(Space):
    """Speed for a user against output of an accelerator, price against the first token, and energy, by load."""

    kind: Literal["pareto"] = "pareto"
    concurrency: Annotated[tuple[Slots, ...], Field(min_length=1)] = Field(
        (1, 4, 16, 64, 256), description="Requests in flight on one replica, a point each."
    )
