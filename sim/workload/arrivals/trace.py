"""Requests of a trace file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Field

from sim.paths import located
from sim.request import Request
from sim.units import Seconds
from sim.workload.arrivals.base import Rate, RecordedArrivals, Slots, poisson_s
from sim.workload.streams import stream
from sim.workload.traces import AUTO, TraceRow, known_format, read_trace, tick_s
from sim.workload.traffic import Floats, Measured, Traffic

__all__ = ["TraceArrivals"]


class TraceArrivals(RecordedArrivals):
    """Replay of a trace file, which brings its own lengths.

    A later turn of a session that has a `think_s` is sent that long after the turn before it has ended, and every other
    request at its recorded time.
    """

    kind: Literal["trace"] = "trace"
    path: Path = Field(description="The file, relative to the experiment's folder; may be gzipped.")
    format: Annotated[str, AfterValidator(known_format)] = Field(
        AUTO, description="Kind of file; auto tells it by the columns of the first record."
    )
    speedup: float = Field(1.0, gt=0, description="Recorded times are divided by this; pauses of sessions are kept.")
    jitter: Annotated[Seconds, Field(ge=0)] | Literal["auto"] = Field(
        0.0,
        description="Times become later by up to this, uniformly [s], because they were rounded; auto: by the tick to"
        " which they seem to be rounded, if any.",
    )
    rate: Rate | None = Field(
        None,
        description="Poisson rate [requests/s] at which requests and sessions begin, in the trace's order, instead of"
        " the recorded times.",
    )
    max_concurrency: Slots | None = Field(
        None, description="Most requests that the client has in flight; later ones wait at the client."
    )

    def replay(self, limit: int | None, seed: int, beside: Path) -> Traffic:
        """Return the first *limit* requests of the file, or all, by rising arrival.

        Raises
        ------
        TraceError
            The file cannot be read, is of no known kind, holds no request, or has a bad row (with its line).
        """
        trace = read_trace(located(self.path, beside), self.format, limit)
        rows = trace.rows
        before = _turn_before(rows)
        tick = tick_s(np.array([row.arrival_s for place, row in enumerate(rows) if place not in before]))
        sent_s = self._times_s(rows, before, tick if self.jitter == "auto" else self.jitter, seed)
        order = np.argsort(sent_s, kind="stable").tolist()
        requests = [_request(index, rows[place], float(sent_s[place])) for index, place in enumerate(order)]
        request_at = dict(zip(order, requests, strict=True))
        return Traffic(
            requests,
            slots_open_s=None if self.max_concurrency is None else np.zeros(self.max_concurrency),
            follow_ups={request_at[earlier].index: request_at[later] for later, earlier in before.items()},
            measured=_measured([rows[place] for place in order]),
            warnings=(*trace.warnings, *self._warnings(tick)),
        )

    def _warnings(self, tick: float) -> Iterator[str]:
        if tick and self.jitter == 0 and self.rate is None:
            yield f"times are rounded to {tick:g} s, which makes batches of requests: set arrivals.jitter: auto"

    def _times_s(self, rows: Sequence[TraceRow], before: dict[int, int], jitter_s: float, seed: int) -> Floats:
        """Return when each row is sent [s]; for a turn that waits for another one this is but a place in the order."""
        if self.rate is None:
            delays_s = stream(seed, "jitter").uniform(0, jitter_s, len(rows))
            return (np.array([row.arrival_s for row in rows]) + delays_s) / self.speedup
        times_s = np.empty(len(rows))
        fresh = [place for place in range(len(rows)) if place not in before]
        times_s[fresh] = poisson_s(len(fresh), self.rate, seed)
        for later, earlier in before.items():
            times_s[later] = times_s[earlier]
        return times_s


def _turn_before(rows: Sequence[TraceRow]) -> dict[int, int]:
    """Return, for each row that is sent after another one has ended, the place of that one; by session and turn."""
    sessions: defaultdict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        if row.session_id is not None:
            sessions[row.session_id].append(place)
    return {
        later: earlier
        for places in sessions.values()
        for earlier, later in pairwise(sorted(places, key=lambda place: rows[place].turn))
        if rows[later].turn and rows[later].think_s is not None
    }


def _request(index: int, row: TraceRow, arrival_s: float) -> Request:
    return Request(
        index,
        row.input_tokens,
        row.output_tokens,
        arrival_s,
        request_id=row.request_id,
        segments=row.segments,
        output_segment=row.output_segment,
        session_id=row.session_id,
        turn=row.turn,
        think_s=row.think_s or 0.0,
        priority=row.priority,
        traffic_class=row.traffic_class,
        tenant=row.tenant,
        schema=row.schema,
    )


def _measured(rows: Sequence[TraceRow]) -> Measured | None:
    columns = np.array([(row.ttft_ms, row.tpot_ms, row.e2e_ms) for row in rows]).T / 1e3
    return None if np.isnan(columns).all() else Measured(*columns)
