"""Collectives over the ranks of a replica."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sim.cost.accelerator import LinkRates, Protocol
from sim.cost.operation import Demand, Work

__all__ = ["AllReduce"]


@dataclass(frozen=True, slots=True)
class AllReduce:
    """Sum over *ranks* of one vector a token, after a row-parallel product.

    ``launch + 2 (n-1)/n payload / rate``, as nccl-tests count the bytes, with the constants of the algorithm that
    engines use for messages of this size; where the next algorithm starts faster than the last one ends, the time
    stands still. Gathering and scattering each move half of that.
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
        bus_bytes = 2.0 * (self.ranks - 1) / self.ranks * payload
        seconds = sum(share * self._seconds(each, bus_bytes) for share, each in used)
        fixed_s = sum(share * each.launch_s for share, each in used)
        return Demand(link_s=seconds - fixed_s, fixed_s=fixed_s)

    @staticmethod
    def _seconds(protocol: Protocol, bus_bytes: float) -> float:
        """Return the time of an algorithm, or its floor if that is longer (for arrays of bytes, too)."""
        above_s = protocol.launch_s + bus_bytes / protocol.bytes_per_s - protocol.floor_s
        return protocol.floor_s + (above_s + abs(above_s)) / 2
