"""The operations of a layer's routed experts: their products, the exchange of tokens, weights that move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from sim.cost.all_to_all import DIRECTIONS, Exchange, Library, Path, Reach
from sim.cost.moe import Experts
from sim.cost.uneven_experts import Rebalancing
from sim.errors import ConfigError
from sim.moe.expert_load import ExpertLoad
from sim.moe.mixture import Rebalance
from sim.profiles.layers import MoeMlp

if TYPE_CHECKING:
    from sim.cost.plan import Plan

__all__ = ["ACTIVATION_BYTES", "exchanges_of", "experts_of", "rebalancing_of"]

ACTIVATION_BYTES = 2.0
"""Activations pass from rank to rank in 16 bits."""


def experts_of(plan: Plan, mlp: MoeMlp, count: int) -> Experts:
    """Return the routed experts of one rank; raise a `ConfigError` where EP does not divide the ranks."""
    parallel = plan.parallelism
    split, rest = divmod(parallel.tp * parallel.dp, parallel.ep)
    if rest:
        message = f"ep {parallel.ep} does not divide tp * dp = {parallel.tp * parallel.dp}"
        raise ConfigError(message, path="deployment.parallelism.ep")
    dtype = plan.model.dtype_of("experts", plan.quantization)
    return Experts(
        "experts",
        count,
        mlp.experts,
        mlp.top_k,
        mlp.latent or plan.model.hidden_size,
        mlp.expert_intermediate / split,
        3 if mlp.gated else 2,
        parallel.ep,
        parallel.dp,
        plan.accelerator.experts(dtype, plan.quantization.activations),
        gathered=plan.library is None,
    )


def exchanges_of(
    plan: Plan, library: Library, mlp: MoeMlp, count: int, load: ExpertLoad | None
) -> Iterator[Exchange]:
    """Carry tokens in the type in which the experts multiply: 8 bits for weights of 8 bits, else 16."""
    parallel, accelerator = plan.parallelism, plan.accelerator
    ranks = parallel.tp * parallel.dp
    reach = Reach.even(mlp.top_k, parallel.ep, -(-ranks // accelerator.hardware.joined))
    if load is not None:
        nodes = load.nodes_per_token if reach.all_nodes > 1 else 1.0
        reach = replace(reach, ranks=load.ranks_per_token, nodes=nodes)
    eight_bits = plan.model.dtype_of("experts", plan.quantization) in ("fp8", "fp8_block", "int8")
    path = Path(
        reach,
        mlp.latent or plan.model.hidden_size,
        1.0 if eight_bits else ACTIVATION_BYTES,
        accelerator.link_bytes_per_s(ranks),
        accelerator.hardware.name,
        accelerator.processors,
    )
    for direction in DIRECTIONS:
        lines = library.lines(path, direction)
        yield Exchange("expert_exchange", direction, count, parallel.tp, parallel.dp, lines, load)


def rebalancing_of(plan: Plan, experts: Experts, load: ExpertLoad, rebalance: Rebalance) -> Rebalancing:
    """Return what moving weights to a new placement takes."""
    expert_bytes = experts.matrices * experts.hidden * experts.intermediate * experts.rates.weight_bytes
    link = plan.accelerator.link(plan.parallelism.tp * plan.parallelism.dp)
    moved_bytes, every = load.fetched_slots / load.ranks * expert_bytes, rebalance.step_interval
    rate, overhead_s = link.large.bytes_per_s, rebalance.layer_overhead_s
    return Rebalancing("rebalancing", experts.repeats, moved_bytes, rate, overhead_s, every)
