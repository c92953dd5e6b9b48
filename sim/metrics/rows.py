"""Raw rows of a run: one a request, one a stride. Every metric is computed from these and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.batch import Blocked
from sim.metrics.columns import Real, Texts, Whole, kept, pieces
from sim.request import Request, Status
from sim.workload.drawn import Drawn

__all__ = ["COLUMNS", "Blocked", "RequestRows", "StrideRows"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_NO_TIMES, _NO_NUMBERS = np.empty(0), np.empty(0, dtype=np.int64)
_TEXTS = ("request_id", "reasons", "traffic_class", "tenant")


@dataclass(frozen=True, kw_only=True)
class RequestRows:
    """One row a request, in the order of the workload; times in seconds from the start, `nan` if never.

    *discarded_s* is the time from first to last token of answers that were begun by replicas that were lost.
    """

    request_id: Sequence[str]
    arrival_s: Real = Real()
    input_tokens: Whole = Whole()
    output_tokens: Whole = Whole()
    emitted_tokens: Whole = Whole()
    cached_tokens: Whole = Whole()
    replica: Whole = Whole()
    admitted_s: Real = Real()
    first_token_s: Real = Real()
    last_token_s: Real = Real()
    preemptions: Whole = Whole()
    retries: Whole = Whole()
    lost_tokens: Whole = Whole()
    discarded_s: Real = Real()
    status: Whole = Whole()
    reasons: Sequence[str]
    traffic_class: Sequence[str]
    tenant: Sequence[str]

    @classmethod
    def of(cls, requests: Sequence[Request]) -> RequestRows:
        """Collect the rows of *requests* after a run."""
        if isinstance(requests, Drawn):
            return cls._drawn(requests)

        def floats(name: str) -> Floats:
            return np.fromiter(map(attrgetter(name), requests), np.float64, len(requests))

        def ints(name: str) -> Ints:
            return np.fromiter(map(attrgetter(name), requests), np.int64, len(requests))

        return cls(
            request_id=[request.request_id or str(request.index) for request in requests],
            arrival_s=floats("arrival_s"),
            input_tokens=ints("input_tokens"),
            output_tokens=ints("output_tokens"),
            emitted_tokens=ints("emitted_tokens"),
            cached_tokens=ints("cached_tokens"),
            replica=ints("replica"),
            admitted_s=floats("admitted_s"),
            first_token_s=floats("first_token_s"),
            last_token_s=floats("last_token_s"),
            preemptions=ints("preemptions"),
            retries=ints("retries"),
            lost_tokens=ints("lost_tokens"),
            discarded_s=floats("discarded_s"),
            status=ints("status"),
            reasons=[request.reason for request in requests],
            traffic_class=[request.traffic_class for request in requests],
            tenant=[request.tenant for request in requests],
        )

    @classmethod
    def _drawn(cls, requests: Drawn) -> RequestRows:
        cells, count = requests.cells(), len(requests)
        columns: dict[str, Any] = {name: cells[name] for name in cls.__dataclass_fields__ if name not in _TEXTS}
        nothing = Texts(count, _nothing, {})
        reasons = Texts(count, _nothing, requests.reasons)
        return cls(
            request_id=Texts(count, str, {}), reasons=reasons, traffic_class=nothing, tenant=nothing, **columns
        )

    def where(self, chosen: NDArray[np.bool_]) -> RequestRows:
        """Return the *chosen* rows."""
        places = np.flatnonzero(chosen)
        columns: dict[str, Any] = {
            name: [getattr(self, name)[place] for place in places] if name in _TEXTS else kept(self, name)[places]
            for name in self.__dataclass_fields__
        }
        return RequestRows(**columns)

    def seen_late(self, iterations: Floats) -> RequestRows:
        """Return the rows of a client that sees each token as many *iterations* of its request late, one a request."""
        if not iterations.any():
            return self
        gaps = np.maximum(self.emitted_tokens - 1, 1)
        late_s = iterations * (self.last_token_s - self.first_token_s) / gaps
        late = copy(self)
        for name in ("first_token_s", "last_token_s"):
            object.__setattr__(late, name, getattr(self, name) + late_s)
        return late

    @property
    def completed(self) -> NDArray[np.bool_]:
        """Which requests were answered in full."""
        return np.equal(self.status, Status.COMPLETED)

    @property
    def ttft_s(self) -> Floats:
        """Time to first token [s]: first emission - arrival."""
        return self.first_token_s - self.arrival_s

    @property
    def e2e_s(self) -> Floats:
        """End-to-end latency [s]: last emission - arrival."""
        return self.last_token_s - self.arrival_s

    @property
    def tpot_s(self) -> Floats:
        """Time per output token after the first [s]: (E2E - TTFT) / (n - 1), `nan` for one token."""
        gaps = np.where(self.emitted_tokens > 1, self.emitted_tokens - 1, np.nan)
        return (self.last_token_s - self.first_token_s) / gaps

    @property
    def queue_s(self) -> Floats:
        """Time from arrival to the start of the iteration that first admits the request [s]."""
        return self.admitted_s - self.arrival_s


def _nothing(place: int) -> str:
    return ""


@dataclass(frozen=True, kw_only=True)
class StrideRows:
    """One row a stride, whose iteration j from 0, below *iterations*, takes ``first_s + j * growth_s``."""

    replica: Whole = Whole()
    start_s: Real = Real()
    first_s: Real = Real()
    growth_s: Real = Real()
    iterations: Whole = Whole()
    decodes: Whole = Whole()
    decode_context_tokens: Whole = Whole()  # of the first iteration, its new tokens included
    emitted: Whole = Whole()  # tokens that the decodes emit: one in each iteration, more where drafts are accepted
    chunks: Whole = Whole()
    prefill_tokens: Whole = Whole()
    masks: Whole = Whole()  # in each iteration, for tokens that follow a grammar
    steady_gaps: Whole = Whole()  # sequences that emitted as the stride began: its first iteration is a gap of theirs
    waiting: Whole = Whole()  # requests that wait while the stride runs, at its start
    running: Whole = Whole()  # admitted requests, those without budget and padding included
    kv_blocks: Whole = Whole()  # in use at the end of the stride, before finished requests free theirs
    preempted: Whole = Whole()  # preemptions when the stride was scheduled
    blocked: Whole = Whole()  # a `Blocked`
    together: Whole = Whole()  # iterations that were simulated in one event with those of this row
    odd_gaps_s: Floats  # gaps between tokens that are no single iteration; no relation to the rows
    odd_gap_counts: Ints  # how many sequences had each of them

    @property
    def duration_s(self) -> Floats:
        """Length of each stride [s]: ``k * first + growth * k * (k - 1) / 2``."""
        return np.concatenate([piece._duration_s() for piece in self.pieces()])

    def _duration_s(self) -> Floats:
        k = self.iterations
        return k * self.first_s + self.growth_s * (k * (k - 1) / 2)

    def where(self, chosen: NDArray[np.bool_]) -> StrideRows:
        """Return the *chosen* rows; odd gaps belong to no row and are left out."""
        columns: dict[str, Any] = {name: kept(self, name)[chosen] for name in COLUMNS}
        return StrideRows(**columns, odd_gaps_s=_NO_TIMES, odd_gap_counts=_NO_NUMBERS)

    def pieces(self) -> list[StrideRows]:
        """Return the rows, some after the other: what is computed of all at once takes many times their memory."""
        columns = [pieces(self, name) for name in COLUMNS]
        parts = [
            StrideRows(**dict(zip(COLUMNS, part, strict=True)), odd_gaps_s=_NO_TIMES, odd_gap_counts=_NO_NUMBERS)
            for part in zip(*columns, strict=True)
        ]
        odd: dict[str, Any] = {"odd_gaps_s": self.odd_gaps_s, "odd_gap_counts": self.odd_gap_counts}
        parts[-1] = replace(parts[-1], **odd)
        return parts


COLUMNS = tuple(StrideRows.__dataclass_fields__)[:-2]
"""What a row says of a stride, in order."""
