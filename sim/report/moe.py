"""A placement of experts, for people and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim.moe import balance
from sim.moe.expert_map import ExpertMap, Floats

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["as_json", "as_table"]


def as_json(placed: ExpertMap, loads: Floats) -> dict[str, Any]:
    """Return the map, the load of each rank and how even it is, in the unit of *loads*."""
    rank_load = placed.rank_load(loads)
    return {
        "physical_to_logical": placed.physical_to_logical.tolist(),
        "rank_load": rank_load.tolist(),
        "max_over_mean": balance.max_over_mean(rank_load).tolist(),
        "imbalance": balance.imbalance(rank_load),
        "balancedness_sglang": balance.balancedness_sglang(rank_load),
        "balancedness_vllm": balance.balancedness_vllm(rank_load),
    }


def as_table(placed: ExpertMap, loads: Floats) -> Table:
    """Return one line a layer: the most and least loaded rank over the mean, and the experts with copies."""
    from rich.table import Table

    layout, rank_load = placed.layout, placed.rank_load(loads)
    table = Table(
        title=f"{layout.experts} experts in {layout.slots} slots on {layout.ranks} ranks",
        caption=(
            f"(max - mean) / mean, mean of layers: {balance.imbalance(rank_load):.4f}; mean / max, mean of layers "
            f"(SGLang): {balance.balancedness_sglang(rank_load):.4f}; sum of means / sum of maxima (vLLM): "
            f"{balance.balancedness_vllm(rank_load):.4f}"
        ),
        title_justify="left",
        caption_justify="left",
    )
    for heading in ("layer", "max / mean", "min / mean", "experts with copies", "most copies"):
        table.add_column(heading, justify="right")
    even = rank_load.mean(axis=1)
    least = rank_load.min(axis=1) / even.clip(min=1e-300)
    for layer, worst in enumerate(balance.max_over_mean(rank_load)):
        copies = placed.replicas()[layer]
        row = (f"{worst:.4f}", f"{least[layer]:.4f}", str((copies > 1).sum()), str(copies.max()))
        table.add_row(str(layer), *row)
    return table
