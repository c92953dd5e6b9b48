"""Text Generation Inference: whole prompts join the batch when enough of them wait, or have waited for long."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from pydantic import Field

from sim.batch import Blocked
from sim.kv import KvCache
from sim.request import Request
from sim.scheduler.base import Scheduler
from sim.scheduler.decision import Decision
from sim.scheduler.state import State

__all__ = ["TokenBudget"]


@dataclass(slots=True)
class _Notes:
    """When prompts were computed last, counted in decode iterations, and whether a decode iteration must follow."""

    prefilled_at: int = 0
    owes_decode: bool = False


class TokenBudget(Scheduler):
    """Prefill-only iterations, admitted by the tokens that everybody will have in the end; so nobody is preempted.

    While a batch runs, more join it between two decode iterations if at least *waiting_served_ratio* of its size wait
    and fit, or *max_waiting_tokens* decode iterations after the last that joined.

    Source: text-generation-inference `backends/v3/src/backend.rs` (`batching_task`) and `queue.rs` (`next_batch`), as
    of version 2: prompts are not cut into chunks.
    """

    kind: Literal["token_budget"] = "token_budget"
    max_num_batched_tokens: int = Field(
        4096, ge=1, description="Most prompt tokens of an iteration: max_batch_prefill_tokens [tokens]."
    )
    max_input_tokens: int | None = Field(
        None, ge=1, description="Longest prompt; a longer one is refused; missing: max_num_batched_tokens [tokens]."
    )
    max_num_seqs: int = Field(128, ge=1, description="Most sequences that run at once: max_batch_size.")
    max_batch_total_tokens: int | None = Field(
        None, ge=1, description="Most tokens, prompts and full answers, of all who run; missing: the KV cache [tokens]."
    )
    waiting_served_ratio: float = Field(
        0.3, ge=0, description="How many must wait and fit, as a share of those who run."
    )
    max_waiting_tokens: int = Field(
        20, ge=1, description="Tokens of everybody who runs, after which any number of them joins [tokens]."
    )
    max_concurrent_requests: int | None = Field(
        128, ge=1, description="Most requests that wait or run; one more is refused (HTTP 429); missing: no limit."
    )

    def notes(self) -> _Notes:
        """Return the notes on a replica that has not run yet."""
        return _Notes()

    def never(self, request: Request, kv: KvCache) -> str:
        """Refuse what no batch could hold."""
        for name in ("max_num_batched_tokens", "max_input_tokens"):
            limit = getattr(self, name)
            if limit is not None and request.input_tokens > limit:
                return f"prompt of {request.input_tokens} tokens exceeds {name} {limit}"
        if request.total_tokens > self._total_tokens(kv):
            return f"{request.total_tokens} tokens exceed max_batch_total_tokens {self._total_tokens(kv)}"
        return ""

    def refusal(self, state: State) -> str:
        """Refuse one more than may wait and run."""
        in_flight = len(state.waiting) + len(state.running)
        if self.max_concurrent_requests is not None and in_flight >= self.max_concurrent_requests:
            return f"{in_flight} requests are in flight already"
        return super().refusal(state)

    def schedule(self, state: State) -> Decision:
        """Let as many as fit join, if enough do and nobody who runs is owed a token; else decode."""
        notes, running = state.notes, state.running
        notes.owes_decode = notes.owes_decode and bool(running)
        waited = running.iteration - notes.prefilled_at + 1 if running else self.max_waiting_tokens
        overdue = waited >= self.max_waiting_tokens
        enough = 1 if overdue else max(math.floor(len(running) * self.waiting_served_ratio), 1)
        fitting, blocked = (0, Blocked.NO) if notes.owes_decode else self._fitting(state)
        if fitting >= enough:
            notes.prefilled_at, notes.owes_decode = running.iteration, bool(running)
            return Decision(prefills=[self._admit(state) for _ in range(fitting)], blocked=blocked)
        owed, notes.owes_decode = notes.owes_decode, False
        state.kv.take(running.blocks_now())
        left = 1 if owed else math.inf if overdue or not state.waiting else self.max_waiting_tokens - waited
        return Decision(decodes=True, blocked=blocked, iterations=left)

    def _fitting(self, state: State) -> tuple[int, Blocked]:
        """Return how many of those who wait could join now, and what keeps the next one out."""
        running, kv = state.running, state.kv
        prompts, tokens, blocks = 0, running.promised_tokens, running.promised_blocks
        for count, request in enumerate(islice(state.waiting, self.max_num_seqs - len(running))):
            prompts += request.input_tokens
            tokens += request.total_tokens
            blocks += kv.most_blocks(request)
            if prompts > self.max_num_batched_tokens:
                return count, Blocked.TOKEN_BUDGET
            if tokens > self._total_tokens(kv) or blocks > kv.num_blocks:
                return count, Blocked.KV_BLOCKS
        full = len(running) + len(state.waiting) >= self.max_num_seqs
        return min(len(state.waiting), self.max_num_seqs - len(running)), Blocked.MAX_NUM_SEQS if full else Blocked.NO

    def _admit(self, state: State) -> tuple[Request, int]:
        request = state.waiting.popleft()
        hit = state.kv.hits(request)
        tokens = request.prefill_tokens - hit
        admitted = state.kv.admit(request, hit, tokens)
        assert admitted, "promised blocks are there"
        state.running.admit(request)
        return request, tokens

    def _total_tokens(self, kv: KvCache) -> int:
        return self.max_batch_total_tokens or kv.num_blocks * kv.block_size
