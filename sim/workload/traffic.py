"""What a workload amounts to: requests in order, and what holds some of them back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sim.request import Request
from sim.workload.drawn import Drawn

__all__ = ["MOST_REQUESTS", "Floats", "Ints", "Measured", "Traffic", "requests_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_REQUESTS = 10_000_000
"""Most requests of a run, all of which are in memory at once."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Latencies that a trace brings along, one a request in the order of the workload, `nan` where missing [s]."""

    ttft_s: Floats
    tpot_s: Floats
    e2e_s: Floats


@dataclass(frozen=True, slots=True)
class Beginnings:
    """When clients began [s]: their slots, if they limit what is in flight, and whatever waits for no other one."""

    slots_open_s: Floats | None
    begun_s: Floats


@dataclass(frozen=True, slots=True)
class Traffic:
    """All requests of a run and the rules by which a client sends them; `Client` plays them.

    Attributes
    ----------
    requests
        In the order of the workload: ``requests[i].index == i``, by rising ``arrival_s``. The arrival is the earliest
        time at which the request may be sent.
    slots_open_s
        A client that limits what it has in flight has this many slots; each opens at its time, carries one request
        at a time, and takes the next one in order. None: no limit.
    think_s
        Pause of the slot after request i has ended [s], one a request. None: no pause.
    follow_ups
        Index of a request -> the next turn of its session, sent ``think_s`` of that turn after this one has ended,
        whatever its own ``arrival_s`` says.
    measured
        Latencies to compare with, if the trace has any.
    warnings
        What a reader of the results should know about the traffic.
    """

    requests: Sequence[Request]
    slots_open_s: Floats | None = None
    think_s: Floats | None = None
    follow_ups: dict[int, Request] = field(default_factory=dict)
    measured: Measured | None = None
    warnings: tuple[str, ...] = ()

    @property
    def openers(self) -> Sequence[Request]:
        """The requests that wait for no other one, in order."""
        waiting = {request.index for request in self.follow_ups.values()}
        return [request for request in self.requests if request.index not in waiting] if waiting else self.requests

    def beginnings(self) -> Beginnings:
        """Return when clients began, once all is served; unlike the requests that weighs little."""
        openers = self.openers
        if isinstance(openers, Drawn):
            return Beginnings(self.slots_open_s, openers.arrival_s)
        return Beginnings(self.slots_open_s, np.array([request.arrival_s for request in openers]))

    def total_tokens(self) -> Ints:
        """Return the tokens of each request, prompt and answer together."""
        if isinstance(self.requests, Drawn):
            return self.requests.total_tokens
        return np.fromiter((request.total_tokens for request in self.requests), np.int64, len(self.requests))


def requests_of(
    arrival_s: Floats, input_tokens: Sequence[int] | Ints, output_tokens: Sequence[int] | Ints
) -> list[Request]:
    """Make one request of each row of three columns, `arrival_s` rising."""
    columns = [np.asarray(column).tolist() for column in (input_tokens, output_tokens, arrival_s)]
    return [Request(index, *row) for index, row in enumerate(zip(*columns, strict=True))]
