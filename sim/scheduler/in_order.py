"""Admission in the order of the queue: what most schedulers share."""

from __future__ import annotations

from typing import ClassVar

from sim.batch import Blocked
from sim.request import Request
from sim.scheduler.base import Scheduler
from sim.scheduler.decision import Decision
from sim.scheduler.state import State

__all__ = ["InOrder"]


class InOrder(Scheduler):
    """Admits one after the other while sequences, tokens and KV blocks last; nobody overtakes who lacks them.

    A scheduler says how much of a prompt is computed (`_share`), and where it differs, whether there is room for the
    request (`_take_in`) and who is next (`_next`). Who gets its KV from another replica takes no tokens.
    """

    disaggregates: ClassVar[bool] = True

    def _admit(self, state: State, decision: Decision, budget: int, places: int) -> None:
        """Add to *decision* who gets one of *places* within *budget* tokens, and what keeps the next one out."""
        running, waiting = state.running, state.waiting
        while True:
            if len(running.order) >= places:
                decision.blocked = Blocked.MAX_NUM_SEQS
            elif budget <= 0:
                decision.blocked = Blocked.TOKEN_BUDGET
            elif waiting:
                request = self._next(state)
                hit = 0 if request is None else state.kv.hits(request)
                if request is not None and request.remote_tokens:
                    if self._take_in(state, request, hit, request.remote_tokens - hit):
                        state.load(request, hit)
                        continue
                    decision.blocked = Blocked.KV_BLOCKS
                    return
                tokens = 0 if request is None else self._share(state, request.prefill_tokens - hit, budget)
                if request is None or not tokens:
                    decision.blocked = Blocked.TOKEN_BUDGET
                elif self._take_in(state, request, hit, tokens):
                    waiting.remove(request)
                    running.admit(request)
                    decision.prefills.append((request, tokens))
                    budget -= tokens
                    continue
                else:
                    decision.blocked = Blocked.KV_BLOCKS
            return

    def _next(self, state: State) -> Request | None:
        """Return who is admitted next if anybody may be."""
        return state.waiting[0]

    def _share(self, state: State, rest: int, budget: int) -> int:
        """Return how many of the *rest* tokens of a prompt are computed with *budget* tokens left; 0: none now."""
        return min(rest, budget)

    def _take_in(self, state: State, request: Request, hit: int, tokens: int) -> bool:
        """Give *request* its blocks for *hit* tokens found and *tokens* computed; return False if there are too few."""
        return state.kv.admit(request, hit, tokens)
