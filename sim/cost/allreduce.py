"""Collectives over the ranks of a replica."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sim.cost.operation import Demand, Work
from sim.cost.rates import LinkRates

__all__ = ["AllReduce", "bus_bytes"]


def bus_bytes(payload_bytes: Any, ranks: int) -> Any:
    """Return what an all-reduce moves over each rank's link, as nccl-tests count it: ``2 (n-1)/n`` of the payload."""
    return 2.0 * (ranks - 1) / ranks * payload_bytes


@dataclass(frozen=True, slots=True)
class AllReduce:
    """Sum over *ranks* of one vector a token, after a row-parallel product.

    ``launch + 2 (n-1)/n payload / rate``, as nccl-tests count the bytes, with the constants of the algorithm that
    engines use for messages of this size. Gathering and scattering each move half of that.
    """

    name: str
    repeats: int
    ranks: int
    payload_bytes: float
    rates: LinkRates
    rows: Literal["tokens", "sampled"] = "tokens"

    def demand(self, work: Work) -> Demand:
        """Return what it asks of the link."""
        payload = (work.tokens if self.rows == "tokens" else work.sampled) * self.payload_bytes
        small, medium, large = self.rates
        is_small, is_large = payload < small.below_bytes, payload >= medium.below_bytes
        used = ((is_small, small), (1 - is_small - is_large, medium), (is_large, large))
        moved = bus_bytes(payload, self.ranks)
        link_s = sum(share * moved / each.bytes_per_s for share, each in used)
        return Demand(link_s=link_s, fixed_s=sum(share * each.launch_s for share, each in used))
