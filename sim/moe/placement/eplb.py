"""DeepSeek's expert parallelism load balancer."""

from __future__ import annotations

from typing import Literal

import numpy as np

from sim.errors import ConfigError
from sim.moe.expert_map import ExpertMap, Floats, Integers, Layout
from sim.moe.packing import Singles, pack, replicate
from sim.moe.placement.base import Placement

__all__ = ["Eplb"]


class Eplb(Placement):
    """EPLB (deepseek-ai/EPLB), slot by slot as the reference implementation gives it.

    Where the groups of experts divide by the nodes it is hierarchical: groups are packed onto nodes, the hottest
    experts of a node get its redundant slots, and the copies are packed onto its ranks. Else it is global: the
    last two steps for all ranks at once.
    """

    kind: Literal["eplb"] = "eplb"

    def place(self, loads: Floats, layout: Layout) -> ExpertMap:
        """Return the map, each layer by itself."""
        groups, nodes = layout.groups, layout.nodes
        if groups % nodes:
            groups = nodes = 1
        if layout.experts % groups:
            raise ConfigError(f"{layout.experts} experts do not divide by {groups} groups")
        rows = [_place(row, layout, groups, nodes) for row in loads.astype(np.float32)]
        return ExpertMap(layout, np.array(rows))


def _place(loads: Singles, layout: Layout, groups: int, nodes: int) -> Integers:
    size = layout.experts // groups
    slots = []
    for members in pack(loads.reshape(groups, size).sum(axis=1), nodes):
        experts = (members[:, None] * size + np.arange(size)).ravel()
        copies = replicate(loads[experts], layout.slots // nodes)
        share = (loads[experts] / np.bincount(copies).astype(np.float32))[copies]
        slots.append(experts[copies[pack(share, layout.ranks // nodes).ravel()]])
    return np.concatenate(slots)
