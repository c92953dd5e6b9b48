"""TensorRT-LLM: decodes and prompts share an iteration; a prompt is admitted where its whole answer will have room."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from sim.kv import KvCache
from sim.request import Request
from sim.scheduler.decision import Decision
from sim.scheduler.in_order import InOrder
from sim.scheduler.state import State

__all__ = ["Inflight"]


class Inflight(InOrder):
    """In-flight batching: the decodes first, then prompts in order while sequences, tokens and capacity allow.

    ``guaranteed_no_evict`` admits a request only if the blocks of everybody's full length are there, shared prefixes
    not considered; ``max_utilization`` admits what fits now and pauses the last started when blocks run out. A paused
    request is computed again. Prompts are whole unless *chunked_context* is on: then the first in order takes what is
    left of the tokens, in multiples of a KV block.

    Source: TensorRT-LLM `cpp/tensorrt_llm/batch_manager/capacityScheduler.cpp` (`GuaranteedNoEvictScheduler`,
    `MaxUtilizationScheduler`) and `microBatchScheduler.cpp` (chunks: `kFIRST_COME_FIRST_SERVED`); for attention data
    parallel ranks `_torch/pyexecutor/py_executor.py` (`_balance_adp_requests`). Left out: that a prompt is held back
    while another one computes a prefix they share (`beneficialToSkip`), and `batching_wait_iters`.
    """

    kind: Literal["inflight"] = "inflight"
    max_num_batched_tokens: int = Field(8192, ge=1, description="Most tokens of an iteration: max_num_tokens [tokens].")
    max_num_seqs: int = Field(2048, ge=1, description="Most sequences that run at once: max_batch_size.")
    capacity_policy: Literal["guaranteed_no_evict", "max_utilization"] = Field(
        "guaranteed_no_evict", description="Reserve KV blocks for full lengths, or preempt: capacity_scheduler_policy."
    )
    chunked_context: bool = Field(False, description="Cut prompts into chunks: enable_chunked_prefill.")
    attention_dp_timeout_iters: int | None = Field(
        None,
        ge=1,
        description="With attention data parallel, prompts wait until every rank has some, for at most so many"
        " iterations: attention_dp_config with enable_balance; missing: they do not wait.",
    )

    @property
    def patience(self) -> int:
        """Iterations for which prompts wait until all attention ranks have some."""
        return self.attention_dp_timeout_iters or 0

    @property
    def longest_chunk(self) -> float:
        """Return the budget of an iteration if prompts are cut."""
        return self.max_num_batched_tokens if self.chunked_context else math.inf

    def never(self, request: Request, kv: KvCache) -> str:
        """Refuse a prompt that no iteration could compute."""
        if self.chunked_context or request.input_tokens <= self.max_num_batched_tokens:
            return ""
        return f"prompt of {request.input_tokens} tokens exceeds max_num_batched_tokens {self.max_num_batched_tokens}"

    def schedule(self, state: State) -> Decision:
        """Serve who runs; admit who waits, unless somebody was paused."""
        running, block_size = state.running, state.kv.block_size
        decision = self._serve_running(
            state,
            self.max_num_batched_tokens,
            lambda rest, left: self._tokens(rest, left, block_size, alone=not running.decoding),
        )
        if not decision.preempted and not state.held:
            budget = self._left(self.max_num_batched_tokens, state, decision)
            self._admit(state, decision, budget, self.max_num_seqs)
        return decision

    def _share(self, state: State, rest: int, budget: int) -> int:
        """Return all of a prompt, none of it, or whole blocks."""
        return self._tokens(rest, budget, state.kv.block_size, alone=not state.running)

    def _take_in(self, state: State, request: Request, hit: int, tokens: int) -> bool:
        """Take *request* in if its full length has room."""
        return self._has_capacity(state, request) and state.kv.admit(request, hit, tokens)

    def _tokens(self, prompt: int, budget: int, block_size: int, *, alone: bool) -> int:
        """Return how much of a *prompt* is computed within *budget* tokens: all, nothing, or whole blocks of it."""
        if prompt <= budget:
            return prompt
        if self.chunked_context:
            return max(budget, 0) // block_size * block_size or (budget if alone else 0)
        return prompt if alone else 0  # one that was paused, and is longer than any new prompt

    def _has_capacity(self, state: State, request: Request) -> bool:
        if self.capacity_policy == "max_utilization":
            return True
        return state.running.promised_blocks + state.kv.most_blocks(request) <= state.kv.num_blocks
