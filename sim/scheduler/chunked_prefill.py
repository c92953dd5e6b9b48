"""vLLM V1: every iteration mixes decodes with as much of the prompts as the token budget allows."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sim.batch import Blocked
from sim.scheduler.base import Decision, Scheduler, State

__all__ = ["ChunkedPrefill"]


class ChunkedPrefill(Scheduler):
    """First the running sequences in admission order, then those who wait, within one budget of tokens.

    Source: `vllm/v1/core/sched/scheduler.py`, `Scheduler.schedule`.
    """

    kind: Literal["chunked_prefill"] = "chunked_prefill"
    max_num_batched_tokens: int = Field(8192, ge=1, description="Budget of an iteration [tokens].")
    max_num_seqs: int = Field(256, ge=1, description="Most sequences that run at once.")

    def schedule(self, state: State) -> Decision:
        """Serve who runs; admit who waits, unless somebody was preempted."""
        decision = self._serve_running(state)
        if not decision.preempted:
            self._admit(state, decision)
        return decision

    def _serve_running(self, state: State) -> Decision:
        running, budget = state.running, self.max_num_batched_tokens
        decision = None
        if not running.stalled and running.decoding <= budget:
            decision = self._decode_all(state)
        if decision is None:
            return self._serve_in_order(state, budget)
        budget -= running.decoding
        # A prompt is left unfinished only where the budget ends, so at most one is, and it was admitted last.
        for request in list(running.prefilling):
            tokens = min(request.prefill_tokens - request.computed_tokens, budget)
            if tokens and self._make_room(state, request, tokens, decision):
                decision.prefills.append((request, tokens))
        return decision

    def _admit(self, state: State, decision: Decision) -> None:
        running, kv, waiting = state.running, state.kv, state.waiting
        budget = self.max_num_batched_tokens - running.decoding - sum(tokens for _, tokens in decision.prefills)
        while True:
            if len(running) >= self.max_num_seqs:
                decision.blocked = Blocked.MAX_NUM_SEQS
            elif budget == 0:
                decision.blocked = Blocked.TOKEN_BUDGET
            elif waiting:
                request = waiting[0]
                hit = state.hits(request)
                tokens = min(request.prefill_tokens - hit, budget)
                if kv.admit(request, hit, tokens):
                    running.admit(waiting.popleft())
                    decision.prefills.append((request, tokens))
                    budget -= tokens
                    continue
                decision.blocked = Blocked.KV_BLOCKS
            return
