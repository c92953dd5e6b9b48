"""What a scheduler is, and the steps that schedulers share."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar

from pydantic import Field

from sim.kv import KvCache
from sim.policy import Policy
from sim.request import Request, Status
from sim.scheduler.decision import Decision
from sim.scheduler.queue import Order
from sim.scheduler.running import Running
from sim.scheduler.state import State

__all__ = ["Scheduler"]

Chunk = Callable[[int, int], int]
"""How many tokens of a prompt an iteration computes, from the rest of it and from what is left of the budget."""


class Scheduler(Policy):
    """Decides what an iteration computes from who waits, who runs and the free blocks; knows no clock.

    `schedule` takes the blocks of the iteration, admits and preempts; the replica completes what was decided. Replicas
    share a policy: what it must remember of one between iterations it keeps in ``state.notes``.
    """

    keeps_batch: ClassVar[bool] = False
    """Whether a batch is formed, possibly waiting for arrivals, and kept until its longest answer is done."""
    disaggregates: ClassVar[bool] = False
    """Whether prompts and answers may be on different replicas: requests get blocks to load KV into (`State.load`), and
    blocks may be held by nobody who runs."""

    order: Order = Field("fcfs", description="Who of those who wait is served first; priority: the lower value.")
    max_num_queued_reqs: int | None = Field(
        None, ge=0, description="Most requests that wait; one more is refused (HTTP 429 or 503); missing: no limit."
    )

    def schedule(self, state: State) -> Decision:
        """Decide the next iteration; called only if somebody waits or runs."""
        raise NotImplementedError

    def notes(self) -> Any:
        """Return what to keep of a replica between its iterations, as it is when nothing has run yet."""
        return None

    @property
    def patience(self) -> int:
        """Iterations for which prompts of an attention rank wait until all ranks have some; 0: they do not."""
        return 0

    @property
    def longest_chunk(self) -> float:
        """Most tokens of one sequence that an iteration computes; infinite where prompts are not cut."""
        return math.inf

    def starts_at(self, waiting: deque[Request], *, more_to_come: bool) -> float:
        """Return when an idle replica should begin with those who wait [s]; the past means now."""
        return waiting[0].queued_s

    def never(self, request: Request, kv: KvCache) -> str:
        """Return why *request* could never be served, or an empty text; asked once, when it arrives."""
        return ""

    def refusal(self, state: State) -> str:
        """Return why one more request is not taken into the queue now, or an empty text."""
        if self.max_num_queued_reqs is None:
            return ""
        limit = self.max_num_queued_reqs if state.running else max(self.max_num_queued_reqs, 1)
        return f"{state.queued} requests wait already" if state.queued >= limit else ""

    @staticmethod
    def _spare_blocks(state: State, watermark: float) -> int:
        """Return the blocks that an admission must leave free: a share of the pool, but none where nobody runs."""
        return int(watermark * state.kv.num_blocks) if watermark and state.running else 0

    @staticmethod
    def _left(budget: int, state: State, decision: Decision) -> int:
        """Return what the decodes and the prompts of *decision* leave of *budget* tokens."""
        running = state.running
        left = budget - running.decoding * running.tokens_each
        for _, tokens in decision.prefills:
            left -= tokens
        return left

    def _decode_all(self, state: State) -> Decision | None:
        """Let every decode compute a token; return None, with nothing taken, where blocks lack."""
        wanted = state.running.blocks_now()
        if wanted:
            if wanted > state.kv.free:
                return None
            state.kv.take(wanted)
        return Decision(decodes=True)

    def _serve_running(self, state: State, budget: int, chunk: Chunk = min) -> Decision:
        """Serve who runs within *budget* tokens, in admission order, preempting where blocks lack.

        An unfinished prompt gets ``chunk(rest, left)`` tokens: of its rest, with so much left of the budget.
        """
        running = state.running
        decision = self._decode_all(state) if self._decodes_come_first(running, budget) else None
        if decision is None:
            return self._serve_in_order(state, budget, chunk)
        if not running.prefilling:
            return decision
        for request in list(running.prefilling):
            tokens = chunk(request.prefill_tokens - request.computed_tokens, budget - running.decode_tokens)
            if tokens:
                self._make_room(state, request, tokens, decision, {})
            if tokens and request.admission >= 0:
                decision.prefills.append((request, tokens))
        return decision

    def _decodes_come_first(self, running: Running, budget: int) -> bool:
        """Tell whether all decodes get a token of the *budget*, and all precede the unfinished prompt if there is one.

        Mostly so: a prompt is left unfinished where the budget ends, and nobody is admitted after it.
        """
        if running.stalled or running.decoding * running.tokens_each > budget:
            return False
        if not running.prefilling:
            return True
        return next(iter(running.prefilling)) is running.last and self.order != "priority"

    def _serve_in_order(self, state: State, budget: int, chunk: Chunk = min) -> Decision:
        """Serve who runs one by one, as `_serve_running` says; slower, and always right."""
        running, decision = state.running, Decision(decodes=True)
        served: dict[Request, int] = {}
        for request in list(running.order):
            if request.admission < 0:
                continue  # preempted for another one
            if request in running.loading:
                continue
            prefilling, stalled = request in running.prefilling, request in running.stalled
            running.settle(request)
            if prefilling:
                tokens = chunk(request.prefill_tokens - request.computed_tokens, budget)
            else:
                tokens = running.tokens_each if running.tokens_each <= budget else 0
            if not tokens:
                if not prefilling and not stalled:
                    running.stall(request)
                    decision.silence(request)
                continue
            budget += self._make_room(state, request, tokens, decision, served)
            if request.admission < 0:
                budget = 0  # vLLM serves nobody after one that preempted itself
                continue
            budget -= tokens
            served[request] = tokens
            if prefilling:
                decision.prefills.append((request, tokens))
            elif stalled:
                running.begin_decoding(request)
                decision.resume(request)
        return decision

    def _make_room(
        self, state: State, request: Request, tokens: int, decision: Decision, served: dict[Request, int]
    ) -> int:
        """Get *request* its blocks by preempting others, in the end itself.

        Return the tokens that victims who were *served* in this iteration already had got.
        """
        refund = 0
        while not state.kv.grow(request, tokens):
            victim = self._victim(state.running)
            given = served.pop(victim, 0)
            state.kv.give_back(victim, given)
            refund += given
            self._preempt(state, victim, decision)
            if victim is request:
                break
        return refund

    def _victim(self, running: Running) -> Request:
        """Return who is preempted next: the last admitted, or the last to arrive of the least urgent."""
        if self.order != "priority":
            return running.last
        return max(running.order, key=lambda request: (request.priority, request.queued_s, request.index))

    def _preempt(self, state: State, victim: Request, decision: Decision) -> None:
        """Free the blocks of *victim* and put it back into the queue; it keeps what it has emitted."""
        self._evict(state, victim, decision)
        victim.computed_tokens, victim.status = 0, Status.WAITING
        victim.preemptions += 1
        state.waiting.put_back(victim)
        decision.preempt(victim)

    @staticmethod
    def _evict(state: State, victim: Request, decision: Decision) -> None:
        """Let *victim* run no longer, and free its blocks."""
        Scheduler._withdraw(state, victim, decision)
        state.kv.release(victim)

    @staticmethod
    def _withdraw(state: State, victim: Request, decision: Decision) -> None:
        """Let *victim*, which keeps its blocks for now, run no longer."""
        running = state.running
        if running.is_decoding(victim):
            decision.silence(victim)
        decision.prefills = [(request, tokens) for request, tokens in decision.prefills if request is not victim]
        running.leave(victim)
