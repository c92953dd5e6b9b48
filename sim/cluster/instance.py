"""A place where a replica runs, is about to, or could."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sim.cluster.clock import Moment
from sim.cluster.replica import Replica
from sim.metrics.instances import InstanceState
from sim.request import Request

__all__ = ["Instance"]


@dataclass(slots=True, eq=False)
class Instance:
    """A replica, or where one could be.

    Attributes
    ----------
    first
        Number of its first server.
    servers
        What the router chooses among: the replica itself, or its attention ranks.
    state
        None: switched off.
    since_s
        When it got its state [s].
    next
        The end of its start, of its grace or of its repair.
    next_s
        When that is [s].
    outdated
        Whether a rolling update is to replace it.
    """

    first: int
    servers: Sequence[Replica]
    state: InstanceState | None = None
    since_s: float = 0.0
    next: Moment | None = None
    next_s: float = 0.0
    outdated: bool = False

    @property
    def idle(self) -> bool:
        """Whether it has no request that is not answered."""
        return not any(server.outstanding for server in self.servers)

    def lose(self) -> list[Request]:
        """Stop it at once and return whom it served."""
        return [request for server in self.servers for request in server.lose()]
