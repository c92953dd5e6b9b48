"""Routed experts: memory follows the distinct experts that the tokens touch, compute follows the tokens."""

from __future__ import annotations

from dataclasses import dataclass

from sim.cost.accelerator import GemmType
from sim.cost.operation import Demand, Work

__all__ = ["Experts", "distinct_experts"]

_ACTIVATION_BYTES = 2.0


def distinct_experts(experts: int, top_k: int, tokens: float) -> float:
    """Return how many experts *tokens* touch on average when each picks *top_k* independently and evenly.

    ``E (1 - (1 - k/E)^T)``: each expert is missed by one token with probability ``1 - k/E``.
    """
    return experts * (1.0 - (1.0 - top_k / experts) ** tokens)


@dataclass(frozen=True, slots=True)
class Experts:
    """The grouped products of one rank's routed experts in one layer.

    Attributes
    ----------
    ranks
        Ranks over which the experts are spread (EP); each holds ``experts / ranks`` of them.
    replicas
        Attention data parallel ranks, whose tokens all meet here.
    expert_params
        Weights of one expert on one rank, after tensor parallelism.
    """

    name: str
    repeats: int
    experts: int
    top_k: int
    hidden: int
    expert_params: float
    ranks: int
    replicas: int
    type: GemmType

    def demand(self, work: Work) -> Demand:
        """Return what an evenly loaded rank asks for; nothing without tokens."""
        tokens, (rates, weight_bytes, quantise_bytes) = work.tokens * self.replicas, self.type
        if not tokens:
            return Demand()
        rows = tokens * self.top_k / self.ranks
        touched = distinct_experts(self.experts, self.top_k, tokens) / self.ranks
        moved_bytes = touched * self.expert_params * weight_bytes + 2.0 * _ACTIVATION_BYTES * rows * self.hidden
        return Demand(
            compute_s=2.0 * rows * self.expert_params / rates.flops_per_s,
            memory_s=moved_bytes / rates.bytes_per_s,
            launch_s=rates.launch_s,
            sharpness=rates.sharpness,
        )
