"""Which accelerators and nodes the replicas of a fleet are on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Topology"]


@dataclass(frozen=True, slots=True)
class Topology:
    """Replicas in a row of accelerators, of which each node has *gpus_per_node*.

    A replica that fits a node is on one; a larger one begins with a node of its own. What is left of a node is empty.

    Attributes
    ----------
    spans
        First accelerator of each replica, and the one after its last.
    """

    gpus_per_node: int
    spans: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, gpus: Sequence[int], gpus_per_node: int) -> Topology:
        """Place replicas that have so many *gpus* each."""
        spans, place = [], 0
        for count in gpus:
            left = -place % gpus_per_node
            if left and count > left:
                place += left
            spans.append((place, place + count))
            place += count
        return cls(gpus_per_node, tuple(spans))

    @property
    def gpus(self) -> int:
        """Places for accelerators, empty ones included."""
        return self.nodes * self.gpus_per_node

    @property
    def nodes(self) -> int:
        """Nodes with any replica."""
        return -(-self.spans[-1][1] // self.gpus_per_node)

    def units(self, what: str) -> int:
        """Return how many things of the kind *what* there are: ``gpu``, ``link``, ``node`` or ``replica``."""
        return {"node": self.nodes, "replica": len(self.spans)}.get(what, self.gpus)

    def hit_by(self, what: str, which: int) -> list[int]:
        """Return the replicas that the loss of a thing stops; a lost link stops those of several accelerators."""
        if what == "replica":
            return [which]
        size = self.gpus_per_node if what == "node" else 1
        low, high, least = which * size, (which + 1) * size, 2 if what == "link" else 1
        return [
            number
            for number, (first, end) in enumerate(self.spans)
            if first < high and low < end and end - first >= least
        ]
