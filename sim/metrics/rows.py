"""Raw rows of a run: one a request, one a stride. Every metric is computed from these and nothing else."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.batch import Blocked
from sim.request import Request, Status

__all__ = ["CELLS", "COLUMNS", "Blocked", "RequestRows", "StrideLog", "StrideRows", "packed"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RequestRows:
    """One row a request, in the order of the workload; times in seconds from the start, `nan` if never.

    *discarded_s* is the time from first to last token of answers that were begun by replicas that were lost.
    """

    request_id: list[str]
    arrival_s: Floats
    input_tokens: Ints
    output_tokens: Ints
    emitted_tokens: Ints
    cached_tokens: Ints
    replica: Ints
    admitted_s: Floats
    first_token_s: Floats
    last_token_s: Floats
    preemptions: Ints
    retries: Ints
    lost_tokens: Ints
    discarded_s: Floats
    status: Ints
    reasons: list[str]
    traffic_class: list[str]
    tenant: list[str]

    @classmethod
    def of(cls, requests: Sequence[Request]) -> RequestRows:
        """Collect the rows of *requests* after a run."""

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

    def where(self, chosen: NDArray[np.bool_]) -> RequestRows:
        """Return the *chosen* rows."""
        places = np.flatnonzero(chosen)
        columns: dict[str, Any] = {}
        for name in self.__dataclass_fields__:
            column = getattr(self, name)
            columns[name] = [column[place] for place in places] if isinstance(column, list) else column[places]
        return RequestRows(**columns)

    def seen_late(self, iterations: Floats) -> RequestRows:
        """Return the rows of a client that sees each token as many *iterations* of its request late, one a request."""
        if not iterations.any():
            return self
        gaps = np.maximum(self.emitted_tokens - 1, 1)
        late_s = iterations * (self.last_token_s - self.first_token_s) / gaps
        return replace(self, first_token_s=self.first_token_s + late_s, last_token_s=self.last_token_s + late_s)

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


@dataclass(frozen=True, slots=True)
class StrideRows:
    """One row a stride, whose iteration j from 0, below *iterations*, takes ``first_s + j * growth_s``."""

    replica: Ints
    start_s: Floats
    first_s: Floats
    growth_s: Floats
    iterations: Ints
    decodes: Ints
    decode_context_tokens: Ints  # of the first iteration, its new tokens included
    emitted: Ints  # tokens that the decodes emit: one in each iteration, more where drafts are accepted
    chunks: Ints
    prefill_tokens: Ints
    masks: Ints  # in each iteration, for tokens that follow a grammar
    steady_gaps: Ints  # sequences that emitted as the stride began, so that its first iteration is a gap of theirs
    waiting: Ints  # requests that wait while the stride runs, at its start
    running: Ints  # admitted requests, those without budget and padding included
    kv_blocks: Ints  # in use at the end of the stride, before finished requests free theirs
    preempted: Ints  # preemptions when the stride was scheduled
    blocked: Ints  # a `Blocked`
    together: Ints  # iterations that were simulated in one event with those of this row
    odd_gaps_s: Floats  # gaps between tokens that are no single iteration; no relation to the rows
    odd_gap_counts: Ints  # how many sequences had each of them

    @property
    def duration_s(self) -> Floats:
        """Length of each stride [s]: ``k * first + growth * k * (k - 1) / 2``."""
        k = self.iterations
        return k * self.first_s + self.growth_s * (k * (k - 1) / 2)

    def where(self, chosen: NDArray[np.bool_]) -> StrideRows:
        """Return the *chosen* rows; odd gaps belong to no row and are left out."""
        columns: dict[str, Any] = {name: getattr(self, name)[chosen] for name in COLUMNS}
        return StrideRows(**columns, odd_gaps_s=np.empty(0), odd_gap_counts=np.empty(0, dtype=np.int64))


COLUMNS = tuple(StrideRows.__dataclass_fields__)[:-2]
"""What a row says of a stride, in order."""
_TIMES = ("start_s", "first_s", "growth_s")
_OF_REQUESTS = ("replica", "decodes", "chunks", "steady_gaps", "waiting", "running", "preempted", "blocked")
_CODES = ["d" if name in _TIMES else "i" if name in _OF_REQUESTS else "q" for name in COLUMNS]
CELLS = np.dtype(list(zip(COLUMNS, _CODES, strict=True)))
"""A row as it is packed: tokens, blocks and iterations may be more than 32 bits hold, requests and replicas not."""
packed = Struct("=" + "".join(_CODES)).pack
"""Packs the cells of one row, in the order of `COLUMNS`."""


@dataclass(slots=True)
class StrideLog:
    """Collects stride rows as *cells*, `packed` (112 bytes a row), since a long run has millions."""

    cells: bytearray = field(default_factory=bytearray)
    _odd_gaps: array[float] = field(default_factory=lambda: array("d"))

    def extend(self, rows: NDArray[np.void]) -> None:
        """Append several *rows* of `CELLS`."""
        self.cells += rows.tobytes()

    def odd_gap(self, gap_s: float, count: int = 1) -> None:
        """Note a gap between tokens of *count* sequences that were passed over by iterations inside it."""
        self._odd_gaps.extend((gap_s, count))

    def rows(self) -> StrideRows:
        """Return everything logged so far, in the order of logging, and forget it."""
        cells, self.cells = self.cells, bytearray()
        table = np.frombuffer(cells, dtype=CELLS)
        columns: dict[str, Any] = {
            name: table[name].astype(np.float64 if name in _TIMES else np.int64) for name in COLUMNS
        }
        odd = np.array(self._odd_gaps).reshape(-1, 2)
        return StrideRows(**columns, odd_gaps_s=odd[:, 0], odd_gap_counts=odd[:, 1].astype(np.int64))
