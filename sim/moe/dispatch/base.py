"""What every dispatch does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.moe.expert_map import ExpertMap, Floats, Integers
from sim.policy import Policy

__all__ = ["Copies", "Dispatch"]


@dataclass(frozen=True, slots=True)
class Copies:
    """Slots of all layers in one row, and which experts they share.

    Attributes
    ----------
    expert
        For each slot its expert, in one row with those of all layers.
    total, number
        For each slot the slots that hold its expert, and how many of them come before it.
    """

    placed: ExpertMap
    expert: Integers
    total: Integers
    number: Integers

    @classmethod
    def of(cls, placed: ExpertMap) -> Copies:
        """Return the copies of *placed*."""
        experts = placed.physical_to_logical
        flat = (experts + placed.layout.experts * np.arange(len(experts))[:, None]).ravel()
        order = np.argsort(flat, kind="stable")
        position = np.arange(len(flat))
        first = np.diff(flat[order], prepend=-1) > 0
        number = np.empty_like(flat)
        number[order] = position - np.maximum.accumulate(np.where(first, position, 0))
        return cls(placed, flat, placed.copies().ravel(), number)

    def shared(self) -> list[Integers]:
        """Return the slots whose expert has several: all first copies, all second ones, and so on."""
        several = np.where(self.total > 1, self.number, -1)
        return [np.flatnonzero(several == number) for number in range(int(several.max()) + 1)]

    def by_expert(self, values: Floats) -> Floats:
        """Return sums of *values*, shape (iterations, slots of all layers), over the copies of each expert."""
        sums = np.zeros((len(values), int(self.expert.max()) + 1))
        for slots in (np.flatnonzero(self.total == 1), *self.shared()):
            sums[:, self.expert[slots]] += values[:, slots]
        return sums


class Dispatch(Policy):
    """Base of the policies that choose among the copies of an expert."""

    def split(self, counts: Integers, placed: ExpertMap, random: np.random.Generator) -> Integers:
        """Return the tokens of each slot, shape (iterations, layers, slots), from those of each expert.

        *counts* has shape (iterations, layers, experts).
        """
        copies, row = Copies.of(placed), counts.reshape(len(counts), -1)
        taken = row[:, copies.expert]
        if placed.layout.slots > placed.layout.experts:
            self.deal(taken, copies, random)
        return taken.reshape(*counts.shape[:-1], -1)

    def deal(self, taken: Integers, copies: Copies, random: np.random.Generator) -> None:
        """Reduce *taken*, where each slot has all of its expert's tokens, to what it really takes.

        Shape (iterations, slots of all layers).
        """
        raise NotImplementedError


def deal_by_weight(taken: Integers, copies: Copies, weights: Floats, random: np.random.Generator) -> None:
    """Let every token take a copy at random by *weights*, of the shape of *taken*.

    Copies are decided one after the other, each from what the earlier ones have left: the conditional binomials of a
    multinomial.
    """
    left_weight = copies.by_expert(weights)
    left = np.zeros(left_weight.shape, dtype=np.int64)
    left[:, copies.expert] = taken
    for slots in copies.shared():
        expert, weight = copies.expert[slots], weights[:, slots]
        whole = left_weight[:, expert]
        chance = np.divide(weight, whole, out=np.ones_like(weight), where=whole > weight)
        taken[:, slots] = random.binomial(left[:, expert], np.clip(chance, 0.0, 1.0))
        left[:, expert] -= taken[:, slots]
        left_weight[:, expert] -= weight
