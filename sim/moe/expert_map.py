"""Where the experts live: every rank has slots, and every slot holds a copy of one expert."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sim.errors import ConfigError

__all__ = ["ExpertMap", "Floats", "Integers", "Layout"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

Number = TypeVar("Number", np.float64, np.int64)

MAX_SLOTS = 2**14
"""Most slots of a layer; the largest known deployments have some hundreds."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What a placement has to fill.

    Attributes
    ----------
    experts
        Experts of a layer.
    ranks, slots
        Ranks over which they are spread, and slots of all of them; slots beyond the experts are redundant.
    groups
        Groups of consecutive experts to which the router limits a token (DeepSeek-V3: 8); 1 for none.
    nodes
        Nodes, of equally many consecutive ranks each.

    Raises
    ------
    ConfigError
        The numbers do not go together.
    """

    experts: int
    ranks: int
    slots: int
    groups: int = 1
    nodes: int = 1

    def __post_init__(self) -> None:
        """Refuse what no placement could fill."""
        for name in ("experts", "ranks", "slots", "groups", "nodes"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.slots > MAX_SLOTS:
            raise ConfigError(f"{self.slots} slots: at most {MAX_SLOTS} are placed")
        if self.slots < self.experts:
            raise ConfigError(f"{self.slots} slots cannot hold {self.experts} experts")
        if self.slots % self.ranks:
            raise ConfigError(f"{self.slots} slots do not divide by {self.ranks} ranks")
        if self.ranks % self.nodes:
            raise ConfigError(f"{self.ranks} ranks do not divide by {self.nodes} nodes")

    @property
    def slots_per_rank(self) -> int:
        """Slots of one rank."""
        return self.slots // self.ranks

    def in_order(self) -> Integers:
        """Return the experts one after the other, then again from the first: what engines start with."""
        return np.arange(self.slots, dtype=np.int64) % self.experts


@dataclass(frozen=True, slots=True)
class ExpertMap:
    """The expert in every slot.

    Attributes
    ----------
    physical_to_logical
        Expert by layer and slot, shape (layers, slots); consecutive slots belong to one rank.
    """

    layout: Layout
    physical_to_logical: Integers

    def __post_init__(self) -> None:
        """Refuse a map that leaves an expert without a slot."""
        if not self.replicas().all():
            layer, expert = np.argwhere(self.replicas() == 0)[0]
            raise ConfigError(f"expert {expert} has no slot in layer {layer}")

    def replicas(self) -> Integers:
        """Return the copies of each expert, shape (layers, experts)."""
        layers, experts = len(self.physical_to_logical), self.layout.experts
        rows = np.arange(layers)[:, None] * experts
        counts = np.bincount((self.physical_to_logical + rows).ravel(), minlength=layers * experts)
        return counts.reshape(layers, experts)

    def copies(self) -> Integers:
        """Return for each slot how many slots hold its expert, shape (layers, slots)."""
        return np.take_along_axis(self.replicas(), self.physical_to_logical, axis=1)

    def slot_load(self, loads: Floats) -> Floats:
        """Return the load of every slot, shape (layers, slots), when its copies share an expert's evenly."""
        return np.take_along_axis(loads / self.replicas(), self.physical_to_logical, axis=1)

    def rank_load(self, loads: Floats) -> Floats:
        """Return the load of every rank, shape (layers, ranks), for *loads* of shape (layers, experts)."""
        load: Floats = self.by_rank(self.slot_load(loads)).sum(axis=-1)
        return load

    def by_rank(self, slots: NDArray[Number]) -> NDArray[Number]:
        """Return *slots*, shape (..., slots), with the slots of each rank apart: (..., ranks, slots of a rank)."""
        return slots.reshape(*slots.shape[:-1], self.layout.ranks, self.layout.slots_per_rank)

    def moved(self, other: ExpertMap) -> Floats:
        """Return for each layer the share of slots whose expert no slot of the same rank held in *other*."""
        before, after = self.by_rank(other.physical_to_logical), self.by_rank(self.physical_to_logical)
        kept = (after[..., :, None] == before[..., None, :]).any(axis=-1)
        moved: Floats = 1.0 - kept.mean(axis=(1, 2))
        return moved
