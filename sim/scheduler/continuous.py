"""Orca and vLLM V0: iterations either prefill whole prompts or decode."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sim.request import Request
from sim.scheduler.base import Decision, State
from sim.scheduler.in_order import InOrder

__all__ = ["Continuous"]


class Continuous(InOrder):
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
        admitted = Decision()
        self._admit(state, admitted, self.max_num_batched_tokens, self.max_num_seqs)
        if admitted.prefills:
            return admitted
        decision = self._decode_all(state) or self._serve_in_order(state, state.running.decoding)
        decision.blocked = admitted.blocked
        return decision

    def _share(self, state: State, rest: int, budget: int) -> int:
        """Return a whole prompt, which runs alone if it is longer than an iteration."""
        return rest if rest <= budget or budget == self.max_num_batched_tokens else 0

    def _take_in(self, state: State, request: Request, hit: int, tokens: int) -> bool:
        """Take *request* in if the watermark stays free."""
        return state.kv.admit(request, hit, tokens, spare=self._spare_blocks(state, self.watermark))
