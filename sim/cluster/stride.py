"""A stride: one engine iteration, or as many decode iterations as change nothing but the context lengths."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.batch import Batch
from sim.metrics.stride_log import CELLS, StrideLog, packed
from sim.scheduler import Ahead, Decision

__all__ = ["ListedStride", "Stride"]


@dataclass(slots=True)
class Stride:
    """*iterations* iterations from *start_s* on, the j-th of which (from 0) takes ``first_s + j * growth_s`` [s].

    *steady_gaps* sequences have every one of these iterations as an inter-token gap. In the end its decodes have
    *emitted* so many tokens.
    """

    start_s: float
    first_s: float
    growth_s: float
    iterations: int
    batch: Batch
    decision: Decision
    waiting: int
    running: int
    steady_gaps: int
    emitted: int = field(default=0, init=False)

    def end_s(self, iterations: int | None = None) -> float:
        """Return when *iterations* (missing: all) of its iterations are done [s]: an arithmetic series."""
        k = self.iterations if iterations is None else iterations
        return self.start_s + (k * self.first_s + self.growth_s * (k * (k - 1) // 2))

    def iterations_until(self, at_s: float) -> int:
        """Return how many iterations are done at the first boundary that is not before *at_s* [s]; at least one."""
        elapsed_s = at_s - self.start_s
        half_s = self.growth_s / 2
        linear_s = self.first_s - half_s
        root_s = linear_s + math.sqrt(linear_s * linear_s + 4 * half_s * elapsed_s)
        k = min(max(math.ceil(2 * elapsed_s / root_s), 1), self.iterations)
        while k > 1 and self.end_s(k - 1) >= at_s:
            k -= 1
        while k < self.iterations and self.end_s(k) < at_s:
            k += 1
        return k

    def listed(self, ahead: Ahead, ends_s: NDArray[np.float64]) -> ListedStride:
        """Return the same with a cost of its own for each iteration."""
        own: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self) if each.init}
        return ListedStride(**own, ahead=ahead, ends_s=ends_s)

    def write(self, log: StrideLog, replica: int, kv_blocks: int) -> None:
        """Enter it into *log*, once it is complete and *kv_blocks* are in use."""
        batch = self.batch
        log.cells += packed(
            replica,
            self.start_s,
            self.first_s,
            self.growth_s,
            self.iterations,
            batch.decodes,
            batch.decode_context_tokens,
            self.emitted,
            len(batch.chunks),
            batch.prefill_tokens if batch.chunks else 0,
            batch.masks,
            self.steady_gaps,
            self.waiting,
            self.running,
            kv_blocks,
            len(self.decision.preempted),
            self.decision.blocked,
            self.iterations,
        )


@dataclass(slots=True)
class ListedStride(Stride):
    """A stride each of whose iterations has its own cost: *ends_s* lists when they end, after the start."""

    ahead: Ahead
    ends_s: NDArray[np.float64]

    def end_s(self, iterations: int | None = None) -> float:
        """Return when *iterations* (missing: all) of its iterations are done [s]."""
        return float(self.ends_s[self.iterations if iterations is None else iterations])

    def iterations_until(self, at_s: float) -> int:
        """Return how many iterations are done at the first boundary that is not before *at_s* [s]; at least one."""
        return min(max(int(np.searchsorted(self.ends_s, at_s)), 1), self.iterations)

    def write(self, log: StrideLog, replica: int, kv_blocks: int) -> None:
        """Enter a row for each iteration, as if it had been stepped by itself."""
        k, ahead, decodes = self.iterations, self.ahead, self.batch.decodes
        taken_later = ahead.new_blocks[1:k][::-1].cumsum()[::-1]
        rows = np.zeros(k, dtype=CELLS)
        for name, values in (
            ("replica", replica),
            ("start_s", self.ends_s[:k]),
            ("first_s", np.diff(self.ends_s[: k + 1])),
            ("iterations", 1),
            ("decodes", decodes),
            ("decode_context_tokens", ahead.context_tokens[:k]),
            ("emitted", ahead.emitted[:k]),
            ("masks", self.batch.masks),
            ("steady_gaps", np.where(np.arange(k), decodes, self.steady_gaps)),
            ("waiting", self.waiting),
            ("running", self.running),
            ("kv_blocks", kv_blocks - np.append(taken_later, 0)),
            ("blocked", self.decision.blocked),
            ("together", k),
        ):
            rows[name] = values
        log.extend(rows)
