"""Routed experts: memory follows the distinct experts that the tokens touch, compute follows the tokens."""

from __future__ import annotations

from dataclasses import dataclass

from sim.cost.operation import Demand, Work
from sim.cost.rates import ExpertRates

__all__ = ["ROUTED_AT_ONCE", "Experts", "distinct_experts"]

ROUTED_AT_ONCE = 16.0
"""Tokens at which half of the time comes up that sorting many takes more than sorting one, in several kernels."""


def distinct_experts(experts: int, top_k: int, tokens: float) -> float:
    """Return how many experts *tokens* touch on average when each picks *top_k* independently and evenly.

    ``E (1 - (1 - k/E)^T)``: each expert is missed by one token with probability ``1 - k/E``.
    """
    missed: float = (1.0 - top_k / experts) ** tokens
    return experts * (1.0 - missed)


@dataclass(frozen=True, slots=True)
class Experts:
    """The grouped products of one rank's routed experts in one layer, evenly loaded.

    * compute and memory overlap: the products of the rank's rows; the weights of the experts touched, and of the
      first columns, which are read while processors wait;
    * fixed: the launch, longer where experts are spread; some time for each expert touched; passes over inputs,
      outputs and the inner activations of the rank's rows; and passes over the inputs of *all* rows, which every
      rank sorts (this is what keeps wide EP from scaling).

    Attributes
    ----------
    hidden, intermediate
        Widths of an expert on one rank, after tensor parallelism.
    matrices
        3 with a gate, else 2.
    ranks
        Ranks over which the experts are spread (EP); each holds ``experts / ranks`` of them.
    replicas
        Attention data parallel ranks, whose tokens all meet here.
    gathered
        Every rank has, and sorts, the rows of all; else only those for its own experts.
    """

    name: str
    repeats: int
    experts: int
    top_k: int
    hidden: int
    intermediate: float
    matrices: int
    ranks: int
    replicas: int
    rates: ExpertRates
    gathered: bool = True

    def demand(self, work: Work) -> Demand:
        """Return what an evenly loaded rank asks for."""
        tokens = work.tokens * self.replicas
        touched = distinct_experts(self.experts, self.top_k, tokens) / self.ranks
        return self.demand_of(tokens, max(touched, 1.0))  # the slowest rank has one at least

    def demand_of(self, tokens: float, touched: float, crowding: float = 1.0) -> Demand:
        """Return what a rank asks for, given the tokens of all ranks and how many of its experts they touch.

        *crowding* is the rank's rows over the mean of all ranks.
        """
        rates, expert_params = self.rates, self.matrices * self.hidden * self.intermediate
        all_rows = tokens * self.top_k
        rows = all_rows / self.ranks * crowding
        sorted_rows = all_rows if self.gathered else rows
        row_elements = 2 * self.hidden + self.matrices * self.intermediate
        read_params = touched * expert_params + self.matrices * self.hidden * rates.depth_columns
        launch_s = rates.launch_s + touched * rates.expert_s + rates.spread_s * (self.ranks > 1)
        launch_s += rates.routing_s * tokens / (tokens + ROUTED_AT_ONCE)
        return Demand(
            compute_s=2.0 * rows * expert_params / rates.flops_per_s,
            memory_s=read_params * rates.weight_bytes / rates.bytes_per_s,
            sharpness=rates.sharpness,
            fixed_s=launch_s + rows * row_elements * rates.row_s + sorted_rows * self.hidden * rates.sort_s,
        )
