"""Routed experts as they are really loaded: a layer lasts as long as its most loaded rank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sim.cost.moe import Experts
from sim.cost.operation import Demand, Work
from sim.moe.expert_load import ExpertLoad
from sim.moe.mixture import Mixture
from sim.profiles.layers import MoeMlp
from sim.profiles.model import Model

__all__ = ["ExpertLoads", "Rebalancing", "UnevenExperts", "average", "loads_of"]

ExpertLoads = Mapping[tuple[int, int], ExpertLoad]
"""Loads by the experts of a layer and how many of them a token chooses."""


def loads_of(mixture: Mixture, model: Model, ranks: int, nodes: int) -> list[ExpertLoads]:
    """Return the loads of every kind of MoE layer in *model*, over the *ranks* of one replica, by placement."""
    layers: Counter[tuple[int, int]] = Counter()
    for kind in model.layers:
        if isinstance(kind.mlp, MoeMlp):
            layers[kind.mlp.experts, kind.mlp.top_k] += kind.count
    kinds = [mixture.loads(count, *kind, ranks, nodes) for kind, count in layers.items()]
    return [dict(zip(layers, placed, strict=True)) for placed in zip(*kinds, strict=True)]


def average(placements: Sequence[ExpertLoads]) -> ExpertLoads:
    """Return the mean loads of *placements* that follow each other."""
    return {kind: ExpertLoad.average([loads[kind] for loads in placements]) for kind in placements[0]}


@dataclass(frozen=True, slots=True)
class UnevenExperts:
    """The products of the most loaded rank: its experts that are touched, and its rows."""

    even: Experts
    load: ExpertLoad

    @property
    def name(self) -> str:
        """Key of the breakdown."""
        return self.even.name

    @property
    def repeats(self) -> int:
        """How often it runs in one iteration."""
        return self.even.repeats

    def demand(self, work: Work) -> Demand:
        """Return what the most loaded rank asks for."""
        tokens = work.tokens * self.even.replicas
        load = self.load.at(tokens)
        return self.even.demand_of(tokens, load.touched, load.max_over_mean)

    def excess_s(self, work: Work) -> float:
        """Return what its rows beyond the mean of all ranks cost, with the same experts touched [s]."""
        tokens = work.tokens * self.even.replicas
        mean = self.even.demand_of(tokens, self.load.at(tokens).touched)
        return self.demand(work).seconds - mean.seconds


@dataclass(frozen=True, slots=True)
class Rebalancing:
    """Weights that a new placement moves between ranks, once in *every* iterations.

    Ranks send and receive at the same time, each its part of the slots that change, over the slowest link.
    """

    name: str
    repeats: int
    moved_bytes: float
    bytes_per_s: float
    overhead_s: float
    every: int

    @property
    def stall_s(self) -> float:
        """How long all of its layers wait for one new placement [s]."""
        return self.repeats * (self.moved_bytes / self.bytes_per_s + self.overhead_s)

    def demand(self, work: Work) -> Demand:
        """Return the share of one iteration, on average."""
        return Demand(link_s=self.moved_bytes / self.bytes_per_s / self.every, fixed_s=self.overhead_s / self.every)
