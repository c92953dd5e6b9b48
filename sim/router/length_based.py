"""Short prompts to some replicas, long ones to the others."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sim.request import Request
from sim.router.base import Choice, Router
from sim.router.fleet import Fleet
from sim.router.gauge import Gauge, Staleness, outstanding
from sim.router.least import Least

__all__ = ["LengthBased"]


class LengthBased(Router):
    """Prompts by length to one of two groups of replicas, so that short ones do not wait for long ones.

    In its group a request goes to the replica with the fewest outstanding requests; where none of the group is ready,
    to one of the other. As SGLang's `bucket` (`sgl-model-gateway/src/policies/bucket.rs`) with fixed borders.
    """

    kind: Literal["length_based"] = "length_based"
    short_tokens: int = Field(ge=1, description="Longest prompt that is short [tokens].")
    short_replicas: int = Field(
        ge=1, description="Replicas with numbers below this serve short prompts; they are numbered from pool to pool."
    )
    staleness_s: Staleness = 0.0

    def begin(self, fleet: Fleet) -> Choice:
        """Keep the replicas of each group in order of their loads."""
        gauge = Gauge(fleet, outstanding, self.staleness_s, engines=False)
        short = Least(gauge, lambda index: index < self.short_replicas)
        long = Least(gauge, lambda index: index >= self.short_replicas)

        def choose(request: Request) -> int:
            own, other = (short, long) if request.input_tokens <= self.short_tokens else (long, short)
            return (own or other).find()

        return choose
