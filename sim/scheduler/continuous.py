"""Orca and vLLM V0: iterations either prefill whole prompts or decode."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sim.batch import Blocked
from sim.request import Request, Status
from sim.scheduler.decision import Decision
from sim.scheduler.in_order import InOrder
from sim.scheduler.state import State

__all__ = ["Continuous"]


class Continuous(InOrder):
    """If anybody who waits can be admitted, an iteration computes those whole prompts; else one token of every decode.

    Source: Yu et al., "Orca: A Distributed Serving System for Transformer-Based Generative Models", OSDI 2022;
    `vllm/core/scheduler.py` before 0.11, `Scheduler._schedule_default`. Of those swapped out, who was admitted first
    comes back first; vLLM takes who was swapped out first, and aborts where its swap space is full instead of
    computing again.
    """

    kind: Literal["continuous"] = "continuous"
    max_num_batched_tokens: int = Field(
        8192, ge=1, description="Most prompt tokens of an iteration; a longer prompt runs alone [tokens]."
    )
    max_num_seqs: int = Field(256, ge=1, description="Most sequences that run at once.")
    watermark: float = Field(
        0.0, ge=0, lt=1, description="Share of the KV blocks that an admission must leave free; vLLM V0 takes 0.01."
    )

    preemption_mode: Literal["recompute", "swap"] = Field(
        "recompute", description="Who lacks blocks is computed again, or waits in the host's memory: --preemption-mode."
    )

    def schedule(self, state: State) -> Decision:
        """Admit who waits; if nobody can be admitted, decode. Who is swapped out comes back first."""
        if state.waiting and state.waiting[0].swapped_blocks:
            return self._swap_in(state)
        admitted = Decision()
        self._admit(state, admitted, self.max_num_batched_tokens, self.max_num_seqs)
        if admitted.prefills:
            return admitted
        decision = self._decode_all(state) or self._serve_in_order(state, state.running.decode_tokens)
        decision.blocked = admitted.blocked
        return decision

    def _swap_in(self, state: State) -> Decision:
        """Decode; if nobody was preempted, let those come back at the head of the queue for whom there is room."""
        running, waiting = state.running, state.waiting
        decision = self._decode_all(state) or self._serve_in_order(state, running.decode_tokens)
        decision.blocked = Blocked.KV_BLOCKS
        while not decision.preempted and waiting and waiting[0].swapped_blocks and len(running) < self.max_num_seqs:
            if not state.kv.swap_in(waiting[0], running.tokens_each, spare=self._spare_blocks(state, self.watermark)):
                break
            request = waiting.popleft()
            running.admit(request)
            running.begin_decoding(request)
            decision.resume(request)
        return decision

    def _next(self, state: State) -> Request | None:
        """Return who is admitted next if anybody may be; nobody whose tokens need not be computed again."""
        return None if state.waiting[0].swapped_blocks else state.waiting[0]

    def _preempt(self, state: State, victim: Request, decision: Decision) -> None:
        """Swap *victim* out where that is asked for and there is room, to the front of the queue; else free it."""
        swaps = self.preemption_mode == "swap" and victim not in state.running.loading
        self._withdraw(state, victim, decision)
        if not swaps or not state.kv.swap_out(victim):
            state.kv.release(victim)
            victim.computed_tokens = 0
        victim.status = Status.WAITING
        victim.preemptions += 1
        state.waiting.put_back(victim)
        decision.preempt(victim)

    def _share(self, state: State, rest: int, budget: int) -> int:
        """Return a whole prompt, which runs alone if it is longer than an iteration."""
        return rest if rest <= budget or budget == self.max_num_batched_tokens else 0

    def _take_in(self, state: State, request: Request, hit: int, tokens: int) -> bool:
        """Take *request* in if the watermark stays free."""
        return state.kv.admit(request, hit, tokens, spare=self._spare_blocks(state, self.watermark))
