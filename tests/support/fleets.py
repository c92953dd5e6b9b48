"""Replicas of which a test says how loaded they are, and a fleet for them to join."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.request import Request
from sim.router import Choice, Fleet, Router


@dataclass
class Replica:
    """A replica of which somebody says how loaded it is."""

    index: int
    outstanding: int = 0
    outstanding_tokens: int = 0
    pending_tokens: int = 0
    waiting: int = 0
    running: int = 0
    kv_usage: float = 0.0
    kv_falls: bool = False
    kv_tokens: int = 10_000


def fleet_of(*outstanding: int) -> tuple[Fleet, list[Replica]]:
    """Return an empty fleet, and replicas that have not joined it yet."""
    return Fleet(np.random.default_rng(0)), [Replica(index, count) for index, count in enumerate(outstanding)]


def routed(router: Router, *replicas: Replica) -> tuple[Choice, Fleet]:
    """Return the choice of *router* among *replicas*, all of them ready."""
    fleet = Fleet(np.random.default_rng(0))
    choose = router.begin(fleet)
    for replica in replicas:
        fleet.join(replica)
    return choose, fleet


def request(input_tokens: int = 0, segments: tuple[tuple[str, int], ...] = (), **fields: object) -> Request:
    """Return a request whose prompt is its segments, if nothing else is said."""
    return Request(0, input_tokens or sum(tokens for _, tokens in segments), 10, segments=segments, **fields)
