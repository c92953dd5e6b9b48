"""vLLM V1: every iteration mixes decodes with as much of the prompts as the token budget allows."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from sim.request import Request
from sim.scheduler.decision import Decision
from sim.scheduler.in_order import InOrder
from sim.scheduler.state import State

__all__ = ["ChunkedPrefill"]


class ChunkedPrefill(InOrder):
    """First the running sequences in admission order, then those who wait, within one budget of tokens.

    Source: `vllm/v1/core/sched/scheduler.py`, `Scheduler.schedule`; for *max_num_partial_prefills* and
    *max_long_partial_prefills*, which V1 accepts only at 1 and does not look at, `vllm/core/scheduler.py` before 0.11,
    `PartialPrefillMetadata`.
    """

    kind: Literal["chunked_prefill"] = "chunked_prefill"
    max_num_batched_tokens: int = Field(8192, ge=1, description="Budget of an iteration [tokens].")
    max_num_seqs: int = Field(256, ge=1, description="Most sequences that run at once.")
    long_prefill_token_threshold: int = Field(
        0, ge=0, description="Most tokens of one prompt in an iteration, and what makes it long; 0: no limit [tokens]."
    )
    max_num_partial_prefills: int | None = Field(
        None, ge=1, description="Most prompts that are computed at once; missing: as many as the budget allows."
    )
    max_long_partial_prefills: int | None = Field(
        None, ge=1, description="Most long ones among them; shorter ones overtake those that wait for it."
    )
    scheduler_reserve_full_isl: bool = Field(
        False, description="Admit a prompt only if all of it fits the KV cache now, not only its first chunk."
    )
    watermark: float = Field(0.0, ge=0, lt=1, description="Share of the KV blocks that an admission must leave free.")

    @property
    def longest_chunk(self) -> float:
        """Return the budget of an iteration."""
        return self.max_num_batched_tokens

    def schedule(self, state: State) -> Decision:
        """Serve who runs; admit who waits, unless somebody was preempted."""
        budget = self.max_num_batched_tokens
        decision = self._serve_running(state, budget, self._chunk)
        if not decision.preempted:
            self._admit(state, decision, self._left(budget, state, decision), self.max_num_seqs)
        return decision

    def _chunk(self, rest: int, left: int) -> int:
        """Return how many of the *rest* tokens of a prompt are computed with *left* tokens of the budget left."""
        return min(rest, self.long_prefill_token_threshold or rest, left)

    def _share(self, state: State, rest: int, budget: int) -> int:
        """Return the first chunk of a prompt."""
        return self._chunk(rest, budget)

    def _take_in(self, state: State, request: Request, hit: int, tokens: int) -> bool:
        """Take *request* in if the watermark stays free, and all of its prompt has room where that is asked for."""
        room = request.prefill_tokens - hit if self.scheduler_reserve_full_isl else 0
        return state.kv.admit(request, hit, tokens, room=room, spare=self._spare_blocks(state, self.watermark))

    def _next(self, state: State) -> Request | None:
        """Return who is admitted next if anybody may be: the first who waits, or the first whose prompt is not long."""
        prompts = state.running.prefilling
        if self.max_num_partial_prefills is not None and len(prompts) >= self.max_num_partial_prefills:
            return None
        limit = self.max_long_partial_prefills
        if limit is None or sum(map(self._is_long, prompts)) < limit:
            return state.waiting[0]
        return next((request for request in state.waiting if not self._is_long(request)), None)

    def _is_long(self, request: Request) -> bool:
        return request.prefill_tokens - request.computed_tokens > (self.long_prefill_token_threshold or math.inf)
