"""A case on its way to an experiment: what is known of it, and what had to be assumed."""

from __future__ import annotations

from dataclasses import dataclass, field

from calibration.cases.serving import ServingCase
from sim.profiles.model import Model

__all__ = ["OPEN_LOOP_REQUESTS", "Draft"]

OPEN_LOOP_REQUESTS = 2000
"""Requests simulated of a longer open loop, whose means need fewer than those of a closed one."""


@dataclass(slots=True)
class Draft:
    """A case, its model, how many requests of an open loop are simulated, and what was assumed so far."""

    case: ServingCase
    model: Model
    open_loop_requests: int = OPEN_LOOP_REQUESTS
    assumed: list[str] = field(default_factory=list)
