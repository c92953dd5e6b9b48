"""Static batching: form a batch, prefill it together, decode until its longest answer is done."""

from __future__ import annotations

import math
from collections import deque
from typing import ClassVar, Literal

from pydantic import Field

from sim.batch import Blocked
from sim.request import Request
from sim.scheduler.base import Scheduler
from sim.scheduler.decision import Decision
from sim.scheduler.state import State
from sim.units import Seconds

__all__ = ["Static"]


class Static(Scheduler):
    """Wait for *batch_size* requests, at most *max_wait_s* from the first of them, or until none is to come.

    The batch is cut where everybody's full length would not fit the pool, so that nobody is ever preempted. Finished
    rows pad it: they cost as sequences and keep their blocks to the end.
    """

    kind: Literal["static"] = "static"
    keeps_batch: ClassVar[bool] = True
    batch_size: int = Field(32, ge=1, description="Most requests of a batch.")
    max_wait_s: Seconds | None = Field(
        None, ge=0, description="Longest wait of a batch's first request for others [s]; missing: no limit."
    )

    def starts_at(self, waiting: deque[Request], *, more_to_come: bool) -> float:
        """Return the past for a full batch or the last one, else when the first has waited for long enough [s]."""
        first_s = min(request.queued_s for request in waiting)
        if len(waiting) >= self.batch_size or not more_to_come:
            return first_s
        return math.inf if self.max_wait_s is None else first_s + self.max_wait_s

    def schedule(self, state: State) -> Decision:
        """Decode the batch that runs, or form and prefill the next."""
        decision = Decision(decodes=True) if state.running else Decision(prefills=self._form(state))
        if decision.decodes:
            state.kv.take(state.running.blocks_now())
        decision.blocked = Blocked.BATCHING
        return decision

    def _form(self, state: State) -> list[tuple[Request, int]]:
        kv, waiting = state.kv, state.waiting
        batch: list[tuple[Request, int]] = []
        room = kv.num_blocks
        while waiting and len(batch) < self.batch_size and kv.most_blocks(waiting[0]) <= room:
            request = waiting.popleft()
            room -= kv.most_blocks(request)
            hit = kv.hits(request)
            kv.admit(request, hit, request.prefill_tokens - hit)
            state.running.admit(request)
            batch.append((request, request.prefill_tokens - hit))
        return batch
