"""The replica that was sent most of the prompt before, unless loads are out of balance."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sim.request import Request
from sim.router.base import Choice, Load, Router
from sim.router.fleet import Fleet
from sim.router.gauge import Gauge, Staleness, outstanding
from sim.router.least import Least
from sim.router.prefixes import PrefixIndex

__all__ = ["PrefixAffinity"]


class PrefixAffinity(Router):
    """SGLang's `cache_aware`: the longest known prefix while loads are balanced, else the fewest requests.

    The router remembers what it sent where, and asks nobody what is still cached. It sends a request to the replica
    with the longest match if that is more than *cache_threshold* of the prompt; of several to the first that had it.
    Otherwise, and while the most loaded replica has both *balance_abs_threshold* requests more than the least loaded
    one and *balance_rel_threshold* times as many, it takes the least loaded one.

    Source: `sgl-model-gateway/src/policies/cache_aware.rs` with the defaults of its `RouterArgs`. There the tree holds
    text and is cut every two minutes; here it holds tokens, four characters each, and is cut at once. Releases before
    the gateway sent a prompt that matched too little to the replica with the smallest tree.
    """

    kind: Literal["prefix_affinity"] = "prefix_affinity"
    cache_threshold: float = Field(0.3, ge=0, le=1, description="Share of a prompt that must match for affinity.")
    balance_abs_threshold: int = Field(64, ge=0, description="Difference of loads that is out of balance [requests].")
    balance_rel_threshold: float = Field(
        1.5, ge=1, description="Ratio of the most to the least load that is out of balance."
    )
    max_tree_tokens: int = Field(
        2**24, ge=1, description="What the router remembers of each replica; SGLang: 2^26 characters [tokens]."
    )
    staleness_s: Staleness = 0.0

    def begin(self, fleet: Fleet) -> Choice:
        """Remember nothing yet."""
        prefixes = PrefixIndex(lambda replica: self.max_tree_tokens)
        fleet.watch(prefixes)
        gauge = Gauge(fleet, outstanding, self.staleness_s, engines=False)
        idlest = Least(gauge)
        busiest = Least(Gauge(fleet, _negative, self.staleness_s, engines=False))

        def choose(request: Request) -> int:
            path = prefixes.path(request)
            chosen, hit = idlest.find(), 0
            if self._balanced(gauge[busiest.find()], gauge[chosen]):
                tokens, holder = prefixes.longest(path)
                if tokens > self.cache_threshold * request.input_tokens:
                    chosen, hit = holder, min(tokens, request.input_tokens - 1)
            request.expected_hit_tokens = hit
            prefixes.insert(path, chosen)
            return chosen

        return choose

    def _balanced(self, most: float, least: float) -> bool:
        return most - least <= self.balance_abs_threshold or most <= self.balance_rel_threshold * least


def _negative(replica: Load) -> float:
    return -replica.outstanding
