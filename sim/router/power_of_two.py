"""The less loaded of two."""

from __future__ import annotations

from typing import Literal

from sim.request import Request
from sim.router.base import Choice, Router
from sim.router.fleet import Fleet
from sim.router.gauge import Gauge, Staleness, outstanding

__all__ = ["PowerOfTwo"]


class PowerOfTwo(Router):
    """Of two replicas drawn at random the one with fewer outstanding requests, of equals the first drawn.

    Nearly as good as asking all, for the cost of asking two: M. Mitzenmacher, "The Power of Two Choices in Randomized
    Load Balancing", IEEE TPDS 12 (2001). In SGLang's gateway `power_of_two`
    (`sgl-model-gateway/src/policies/power_of_two.rs`).
    """

    kind: Literal["power_of_two"] = "power_of_two"
    staleness_s: Staleness = 0.0

    def begin(self, fleet: Fleet) -> Choice:
        """Draw two replicas for each request."""
        gauge = Gauge(fleet, outstanding, self.staleness_s, engines=False)

        def choose(request: Request) -> int:
            first, second = _two(fleet)
            return second if gauge[second] < gauge[first] else first

        return choose


def _two(fleet: Fleet) -> tuple[int, int]:
    """Draw two different replicas, or the only one twice."""
    ready = fleet.ready
    first = int(next(fleet.uniforms) * len(ready))
    if len(ready) == 1:
        return ready[0], ready[0]
    second = int(next(fleet.uniforms) * (len(ready) - 1))
    return ready[first], ready[second + (second >= first)]
