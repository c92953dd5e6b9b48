"""What a run is besides its rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from sim.metrics.model_error import ModelError, Spread
from sim.metrics.pools import PoolContext
from sim.slo import SLO

__all__ = ["RunContext"]


@dataclass(frozen=True, slots=True)
class RunContext:
    """What the rows of a run do not tell.

    Attributes
    ----------
    pools
        In the order of their replicas' numbers.
    class_slos
        The classes of requests that the workload names, with their own objectives if they have any.
    wall_s
        How long the simulation took [s].
    warnings
        What was found on the way to the run.
    model_error
        How far predictions of such runs were off; None: not known.
    spread
        What draws of the constants say; None: none were made.
    """

    pools: tuple[PoolContext, ...]
    slo: SLO | None = None
    class_slos: Mapping[str, SLO | None] = field(default_factory=dict)
    wall_s: float = math.nan
    warnings: tuple[str, ...] = ()
    model_error: ModelError | None = None
    spread: Spread | None = None
