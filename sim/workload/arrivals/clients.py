"""Clients that differ: each with its own rate, burstiness and lengths."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field, field_validator

from sim.request import Request
from sim.section import Section
from sim.workload.arrivals.base import Rate, RecordedArrivals
from sim.workload.arrivals.shape import RateShape
from sim.workload.lengths import AnyLengths
from sim.workload.streams import stream
from sim.workload.traffic import Floats, Traffic

__all__ = ["Client", "ClientArrivals"]

_REQUESTS = 1000
"""As many as a workload has where nobody says."""


class Client(Section):
    """Somebody who sends requests, whatever the others do."""

    name: str | None = Field(None, min_length=1, description="Its tenant and class; missing: client and its number.")
    weight: float = Field(1.0, gt=0, description="Its part of the rate, beside those of others.")
    cv: float = Field(1.0, gt=0, description="Standard deviation of its gaps over their mean: 1 is Poisson.")
    lengths: AnyLengths = Field(description="Its prompts and answers.")


class ClientArrivals(RecordedArrivals):
    """The requests of several clients, merged: what a provider sees is bursty where its largest clients are.

    Gaps are gamma distributed, and nobody begins with the run: the first gap is the rest of one that was under way, so
    that a bursty client is as likely between two bursts as ever. Each client draws from random streams of its own, so
    that another one more changes no gap and no length of those before. Source: Xiang et al., "ServeGen", NSDI 2026, and
    alibaba/ServeGen@765b7a2, which composes production workloads of clients with a rate, a coefficient of variation and
    lengths each.
    """

    kind: Literal["clients"] = "clients"
    rate: Rate = Field(description="Mean rate of all together [requests/s].")
    clients: tuple[Client, ...] = Field(
        min_length=1, description="Who they are.", examples=[[{"lengths": {"kind": "preset", "name": "chat"}}]]
    )
    shape: RateShape | None = Field(None, description="How the rate of all changes; missing: it does not.")

    @field_validator("clients")
    @classmethod
    def _named_once(cls, clients: tuple[Client, ...]) -> tuple[Client, ...]:
        names = _names(clients)
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two clients are called {twice!r}")
        return clients

    def replay(self, limit: int | None, seed: int, beside: Path) -> Traffic:
        """Return the first *limit* requests of all clients, by rising arrival."""
        count = limit or _REQUESTS
        weights = np.array([client.weight for client in self.clients])
        expected = self._merged(weights / weights.sum(), count, seed)
        whose, at = (np.concatenate(column) for column in zip(*expected, strict=True))
        order = np.lexsort((whose, at))[:count]
        whose, at = whose[order], at[order]
        arrival_s = at / self.rate if self.shape is None else self.shape.times_of(at, self.rate, beside)
        return Traffic(list(self._requests(whose, arrival_s, seed, beside)))

    def _merged(self, shares: Floats, count: int, seed: int) -> list[tuple[Floats, Floats]]:
        """Return each client's number and its arrivals, where all send one request a unit of time; *count* or more.

        A client's arrivals are drawn until all together are as many by the time of its last.
        """
        drawn = [math.ceil(1.1 * share * count) + 10 for share in shares.tolist()]
        while True:
            times = [self._times(place, share, drawn[place], seed) for place, share in enumerate(shares.tolist())]
            known = min(float(each[-1]) for each in times)
            if sum(int(np.searchsorted(each, known, side="right")) for each in times) >= count:
                return [(np.full(len(each), place), each) for place, each in enumerate(times)]
            drawn = [2 * number for number in drawn]

    def _times(self, place: int, share: float, number: int, seed: int) -> Floats:
        """Return the first *number* arrivals of a client that sends *share* requests a unit of time.

        Of the gap that is under way at an instant, which is long more often than others, any part may have passed. A
        Poisson process forgets.
        """
        shape, name = self.clients[place].cv ** -2, _names(self.clients)[place]
        gaps = stream(seed, f"arrivals of {name}").standard_gamma(shape, number)
        if shape != 1:
            under_way = stream(seed, f"gap under way of {name}")
            gaps[0] = under_way.random() * under_way.standard_gamma(shape + 1)
        return np.cumsum(gaps) / (shape * share)

    def _requests(self, whose: Floats, arrival_s: Floats, seed: int, beside: Path) -> Iterator[Request]:
        names = _names(self.clients)
        columns = []
        for place, client in enumerate(self.clients):
            own_seed = int(stream(seed, f"lengths of {names[place]}").integers(2**63))
            lengths = client.lengths.draw(max(int((whose == place).sum()), 1), own_seed, beside)
            columns.append(iter(zip(*(column.tolist() for column in lengths), strict=True)))
        for index, (place, at_s) in enumerate(zip(whose.tolist(), arrival_s.tolist(), strict=True)):
            name, (input_tokens, output_tokens) = names[int(place)], next(columns[int(place)])
            yield Request(index, input_tokens, output_tokens, at_s, traffic_class=name, tenant=name)


def _names(clients: Sequence[Client]) -> list[str]:
    return [client.name or f"client {place}" for place, client in enumerate(clients)]
