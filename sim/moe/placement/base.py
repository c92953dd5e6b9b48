"""What every placement does."""

from __future__ import annotations

from sim.moe.expert_map import ExpertMap, Floats, Layout
from sim.policy import Policy

__all__ = ["Placement"]


class Placement(Policy):
    """Base of the policies that put experts into slots."""

    def place(self, loads: Floats, layout: Layout) -> ExpertMap:
        """Return the map for *loads* of shape (layers, experts).

        Raises
        ------
        UserError
            The policy cannot fill this layout.
        """
        raise NotImplementedError
