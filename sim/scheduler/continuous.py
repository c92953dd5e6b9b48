"""Orca and vLLM V0: iterations either prefill whole prompts or decode."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sim.batch import Blocked
from sim.scheduler.base import Decision, Scheduler, State

__all__ = ["Continuous"]


class Continuous(Scheduler):
    """If anybody who waits can be admitted, an iteration computes those whole prompts; else one token of every decode.

    Source: Yu et al., "Orca: A Distributed Serving System for Transformer-Based Generative Models", OSDI 2022;
    `vllm/core/scheduler.py` before 0.11, `Scheduler._schedule_default`.
    """

    kind: Literal["continuous"] = "continuous"
    max_num_batched_tokens: int = Field(
        8192, ge=1, description="Most prompt tokens of an iteration; a longer prompt runs alone [tokens]."
    )
    max_num_seqs: int = Field(256, ge=1, description="Most sequences that run at once.")
    watermark: float = Field(
        0.0, ge=0, lt=1, description="Share of the KV blocks that an admission must leave free; vLLM V0 takes 0.01."
    )

    def schedule(self, state: State) -> Decision:
        """Admit who waits; if nobody can be admitted, decode."""
        decision = self._admit(state)
        if decision.prefills:
            return decision
        blocked = decision.blocked
        decision = self._decode_all(state) or self._serve_in_order(state, state.running.decoding)
        decision.blocked = blocked
        return decision

    def _admit(self, state: State) -> Decision:
        running, kv, waiting = state.running, state.kv, state.waiting
        decision, budget = Decision(), self.max_num_batched_tokens
        while True:
            if len(running) >= self.max_num_seqs:
                decision.blocked = Blocked.MAX_NUM_SEQS
            elif waiting:
                request = waiting[0]
                hit = kv.hits(request)
                tokens = request.prefill_tokens - hit
                if tokens > budget and decision.prefills:
                    decision.blocked = Blocked.TOKEN_BUDGET
                elif kv.admit(request, hit, tokens, spare=self._spare_blocks(state, self.watermark)):
                    running.admit(waiting.popleft())
                    decision.prefills.append((request, tokens))
                    budget -= tokens
                    continue
                else:
                    decision.blocked = Blocked.KV_BLOCKS
            return decision
