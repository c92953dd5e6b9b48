"""Collectives over the ranks of a replica."""

from __future__ import annotations

from dataclasses import dataclass

from sim.cost.accelerator import Accelerator
from sim.cost.operation import Demand, Work, joint

__all__ = ["AllReduce"]


@dataclass(frozen=True, slots=True)
class AllReduce:
    """Sum over *ranks* of one vector a token, after a row-parallel product.

    ``launch * (1 + (bus bytes / (rate * launch))^p)^(1/p)`` with the bus bytes ``2 (n-1)/n`` times the payload, as
    nccl-tests count them. Gathering and scattering each move half of that.
    """

    name: str
    repeats: int
    ranks: int
    payload_bytes_per_row: float
    launch_s: float
    bytes_per_s: float
    sharpness: float
    of_sampled: bool = False

    @classmethod
    def over(
        cls, accelerator: Accelerator, ranks: int, payload_bytes: float, name: str, repeats: int, *, of_sampled: bool = False
    ) -> AllReduce:
        """Return the collective of *accelerator* over *ranks* with *payload_bytes* a token."""
        constants, link_bytes_per_s = accelerator.link(ranks)
        return cls(
            name,
            repeats,
            ranks,
            payload_bytes,
            constants.launch_s.value * accelerator.factors.launch,
            constants.link.value * link_bytes_per_s,
            constants.sharpness.value,
            of_sampled,
        )

    def demand(self, work: Work) -> Demand:
        """Return what it asks of the link; nothing without rows or with one rank."""
        rows = work.sampled if self.of_sampled else work.tokens
        if not rows or self.ranks == 1:
            return Demand()
        bus_bytes = 2.0 * (self.ranks - 1) / self.ranks * rows * self.payload_bytes_per_row
        seconds = joint(self.launch_s, bus_bytes / self.bytes_per_s, self.sharpness)
        return Demand(link_s=seconds - self.launch_s, launch_s=self.launch_s)
