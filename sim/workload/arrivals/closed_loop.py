"""A fixed number of users, each of whom waits for an answer before asking again."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from sim.units import Seconds
from sim.workload.arrivals.base import DrawnArrivals, Rate, Schedule, Slots, poisson_s
from sim.workload.streams import stream
from sim.workload.traffic import Floats

__all__ = ["ClosedLoopArrivals"]


class ClosedLoopArrivals(DrawnArrivals):
    """Users who send one request at a time, as ``vllm bench serve --max-concurrency`` does."""

    kind: Literal["closed_loop"] = "closed_loop"
    concurrency: Slots = Field(examples=[32], description="Users, and so the most requests in flight.")
    think_s: Seconds = Field(0.0, ge=0, description="Mean pause of a user between an answer and the next request [s].")
    think_distribution: Literal["fixed", "exponential"] = Field("fixed", description="Spread of the pauses.")
    ramp_s: Seconds = Field(0.0, ge=0, description="The users begin one by one, evenly over this time [s].")
    request_rate: Rate | None = Field(
        None, description="Poisson rate that the users together do not exceed [requests/s]; missing: no limit."
    )

    def schedule(self, count: int, seed: int, beside: Path) -> Schedule:
        """Return one slot a user, which opens when the user begins, and the users' pauses."""
        return Schedule(
            np.zeros(count) if self.request_rate is None else poisson_s(count, self.request_rate, seed),
            slots_open_s=np.linspace(0.0, self.ramp_s, self.concurrency, endpoint=False),
            think_s=self._pauses_s(count, seed),
        )

    def _pauses_s(self, count: int, seed: int) -> Floats | None:
        if self.think_s == 0:
            return None
        if self.think_distribution == "fixed":
            return np.full(count, self.think_s)
        return self.think_s * stream(seed, "think").standard_exponential(count)
