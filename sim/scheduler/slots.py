"""llama.cpp and Ollama: a fixed number of slots, each with a share of the context that was allocated at start."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from sim.kv import KvCache
from sim.request import Request
from sim.scheduler.decision import Decision
from sim.scheduler.in_order import InOrder
from sim.scheduler.state import State

__all__ = ["Slots"]


class Slots(InOrder):
    """One token of every busy slot, then the prompts of the slots in order until the batch is full; others queue.

    Split, every slot has an equal share of the context, and a request that needs more is refused. *unified*, the slots
    share all of it, and when it runs out the server gives up the sequence that it took in last.

    Source: llama.cpp `tools/server/server-context.cpp` (`update_slots`, "Context size has been exceeded") and
    `tools/server/README.md`; Ollama `docs/faq.mdx` and `server/sched.go` (`ErrMaxQueue`). The micro-batches into which
    a batch is cut (`n_ubatch`) count in the memory plan only.
    """

    disaggregates: ClassVar[bool] = False

    kind: Literal["slots"] = "slots"
    max_num_batched_tokens: int = Field(2048, ge=1, description="Most tokens of an iteration: --batch-size [tokens].")
    max_num_seqs: int = Field(4, ge=1, description="Slots: --parallel, OLLAMA_NUM_PARALLEL.")
    unified: bool = Field(False, description="Slots share the whole context: --kv-unified.")

    @property
    def longest_chunk(self) -> float:
        """Return the budget of an iteration."""
        return self.max_num_batched_tokens

    def never(self, request: Request, kv: KvCache) -> str:
        """Refuse what is longer than a slot's share of the context."""
        share = kv.num_blocks * kv.block_size // (1 if self.unified else self.max_num_seqs)
        tokens = request.total_tokens + kv.draft_tokens
        return f"{tokens} tokens exceed the {share} of a slot" if tokens > share else ""

    def schedule(self, state: State) -> Decision:
        """Serve the busy slots, then fill the free ones."""
        decision = self._serve_running(state, self.max_num_batched_tokens)
        if not decision.failed:
            budget = self._left(self.max_num_batched_tokens, state, decision)
            self._admit(state, decision, budget, self.max_num_seqs)
        return decision

    def _preempt(self, state: State, victim: Request, decision: Decision) -> None:
        """Give *victim* up: the server does not compute a sequence again."""
        self._evict(state, victim, decision)
        victim.reason = "the context that all slots share is full"
        decision.fail(victim)
