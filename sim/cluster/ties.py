"""What ties a replica to the cluster around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from sim.request import Request

if TYPE_CHECKING:
    from sim.cluster.meter import Meter

__all__ = ["Ties"]


class Ties(NamedTuple):
    """Whom a replica asks and tells.

    Attributes
    ----------
    more_to_come
        Tells whether any arrival is scheduled.
    on_done
        Called with every request that completes, is rejected or fails.
    on_change
        Called with the replica's number where an iteration begins or ends; None: nobody cares.
    on_load
        Called with a request that has got blocks for KV from another replica, and for how many tokens; `loaded` is to
        be called when it is there.
    lends
        Blocks of a finished request are held until `take_back` is called: their KV is sent to another replica.
    meter
        Counts what an autoscaler wants to know; None: there is none.
    """

    more_to_come: Callable[[], bool]
    on_done: Callable[[Request], None]
    on_change: Callable[[int], None] | None = None
    on_load: Callable[[Request, int], None] | None = None
    lends: bool = False
    meter: Meter | None = None
