"""What a scheduler sees, what it decides, and the steps that schedulers share."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import ClassVar

from sim.batch import Blocked
from sim.kv import KvCache
from sim.policy import Policy
from sim.request import Request, Status
from sim.scheduler.running import Running

__all__ = ["Decision", "Scheduler", "State"]


@dataclass(slots=True)
class State:
    """A replica as its scheduler sees it: who waits (first come, first served), who runs, and the KV cache."""

    waiting: deque[Request]
    running: Running
    kv: KvCache

    def hits(self, request: Request) -> int:
        """Return the tokens of *request*'s prompt that the prefix cache holds, answers still being written included."""
        self.publish_writers(request)
        return self.kv.hits(request)

    def publish_writers(self, request: Request) -> None:
        """Key what is there by now of the answers that *request* has in its prompt."""
        for writer in self.kv.writers(request):
            self.running.settle(writer)
            self.kv.publish(writer)


@dataclass(slots=True)
class Decision:
    """What one iteration computes.

    Attributes
    ----------
    prefills
        Requests and how many tokens of their prompts are computed.
    decodes
        Whether the decoding requests compute a token each; their blocks are taken.
    preempted
        Requests put back to the front of the queue.
    silenced, resumed
        Of the decodes: those that stop emitting with this iteration, preempted or without token budget, and those that
        had no budget before and now have.
    blocked
        Why the head of the queue was not admitted, or why an arrival would not be.
    """

    prefills: list[tuple[Request, int]] = field(default_factory=list)
    decodes: bool = False
    preempted: list[Request] = field(default_factory=list)
    silenced: list[Request] = field(default_factory=list)
    resumed: list[Request] = field(default_factory=list)
    blocked: Blocked = Blocked.NO

    @property
    def lasting(self) -> bool:
        """Whether it stands until a decode finishes, a block lacks or a request arrives that is not blocked."""
        return self.decodes and not (self.prefills or self.preempted or self.silenced or self.resumed)


class Scheduler(Policy):
    """Decides what an iteration computes from who waits, who runs and the free blocks; knows no clock.

    `schedule` takes the blocks of the iteration, admits and preempts; the replica completes what was decided.
    """

    keeps_batch: ClassVar[bool] = False
    """Whether a batch is formed, possibly waiting for arrivals, and kept until its longest answer is done."""

    def schedule(self, state: State) -> Decision:
        """Decide the next iteration; called only if somebody waits or runs."""
        raise NotImplementedError

    def starts_at(self, waiting: deque[Request], *, more_to_come: bool) -> float:
        """Return when an idle replica should begin with those who wait [s]; the past means now."""
        return waiting[0].queued_s

    def _decode_all(self, state: State) -> Decision | None:
        """Let every decode compute a token; return None, with nothing taken, where blocks lack."""
        wanted = state.running.new_blocks(1)
        if wanted > state.kv.free:
            return None
        state.kv.take(wanted)
        return Decision(decodes=True)

    def _serve_in_order(self, state: State, budget: int) -> Decision:
        """Serve who runs one by one within *budget* tokens, preempting the last admitted where blocks lack."""
        running, decision = state.running, Decision(decodes=True)
        for request in list(running.order):
            if request.admission < 0:
                break  # preempted for an earlier one, as are all after it
            prefilling, stalled = request in running.prefilling, request in running.stalled
            running.settle(request)
            tokens = min(request.prefill_tokens - request.computed_tokens, budget)
            if not tokens:
                if not prefilling and not stalled:
                    running.stall(request)
                    decision.silenced.append(request)
                continue
            if not self._make_room(state, request, tokens, decision):
                break
            budget -= tokens
            if prefilling:
                decision.prefills.append((request, tokens))
            elif stalled:
                running.begin_decoding(request)
                decision.resumed.append(request)
        return decision

    def _make_room(self, state: State, request: Request, tokens: int, decision: Decision) -> bool:
        """Get *request* its blocks by preempting from the last admitted on; False if that was *request* itself."""
        while not state.kv.grow(request, tokens):
            victim = state.running.last
            self._preempt(state, victim, decision)
            if victim is request:
                return False
        return True

    @staticmethod
    def _preempt(state: State, victim: Request, decision: Decision) -> None:
        """Free the blocks of *victim* and put it to the front of the queue; it keeps what it has emitted."""
        running = state.running
        if victim not in running.prefilling and victim not in running.stalled:
            decision.silenced.append(victim)
        running.leave(victim)
        state.kv.release(victim)
        victim.computed_tokens, victim.status = 0, Status.WAITING
        victim.preemptions += 1
        state.waiting.appendleft(victim)
        decision.preempted.append(victim)
