"""When requests are sent."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from sim.policy import Policy
from sim.workload.streams import stream
from sim.workload.traffic import MOST_REQUESTS, Floats, Traffic

__all__ = ["ArrivalPolicy", "DrawnArrivals", "OpenLoop", "Rate", "RecordedArrivals", "Schedule", "Slots", "poisson_s"]

Rate = Annotated[float, Field(ge=1e-6, examples=[4.0])]
"""Requests in a second, at least one in twelve days."""
Slots = Annotated[int, Field(ge=1, le=MOST_REQUESTS)]
"""Requests that a client has in flight at most."""


class Schedule(NamedTuple):
    """When requests may be sent; the fields mean what they mean in `Traffic`."""

    arrival_s: Floats
    slots_open_s: Floats | None = None
    think_s: Floats | None = None


class ArrivalPolicy(Policy):
    """Base of the arrival policies; one file each."""


class RecordedArrivals(ArrivalPolicy):
    """Base of policies that know the whole of their requests, so that an experiment gives no lengths."""

    @abstractmethod
    def replay(self, limit: int | None, seed: int, beside: Path) -> Traffic:
        """Return the first *limit* requests, or all; *beside* is the experiment's folder."""


class DrawnArrivals(ArrivalPolicy):
    """Base of policies that know times only."""

    @abstractmethod
    def schedule(self, count: int, seed: int, beside: Path) -> Schedule:
        """Return when *count* requests are sent; *beside* is the experiment's folder, where profiles may lie."""


class OpenLoop(DrawnArrivals):
    """Base of policies whose requests come at times of their own, whatever becomes of the ones before."""

    max_concurrency: Slots | None = Field(
        None, description="Most requests that the client has in flight; later ones wait at the client."
    )

    @abstractmethod
    def times_s(self, count: int, seed: int, beside: Path) -> Floats:
        """Return *count* rising arrival times [s]."""

    def schedule(self, count: int, seed: int, beside: Path) -> Schedule:
        """Return `times_s`, with the limit of requests in flight."""
        slots_open_s = None if self.max_concurrency is None else np.zeros(self.max_concurrency)
        return Schedule(self.times_s(count, seed, beside), slots_open_s)


def poisson_s(count: int, rate: float, seed: int) -> Floats:
    """Return *count* times of a Poisson process [s].

    The same *seed* gives the same gaps in units of the mean gap, so that two rates are compared on one pattern.
    """
    return np.cumsum(stream(seed, "arrivals").standard_exponential(count)) / rate
