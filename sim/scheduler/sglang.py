"""SGLang: prompts go first, admitted by an estimate of the answers' lengths; decodes are retracted where it fails."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field

from sim.batch import Blocked
from sim.request import Request
from sim.scheduler.base import Scheduler
from sim.scheduler.decision import Decision
from sim.scheduler.running import Running
from sim.scheduler.state import State

__all__ = ["Sglang"]

_NEW_TOKEN_RATIO = 0.7
_MIN_RATIO_FACTOR = 0.14
_DECAY_STEPS = 600
_RETRACT_STEPS = 20
_LPM_LIMIT = 128


@dataclass(slots=True)
class _Notes:
    """What is estimated of a replica.

    Attributes
    ----------
    ratio, since
        Share of the tokens still to come that is reserved, and the decode iteration from which on it decays.
    full_at
        How many ran when the next one found no room, so that nobody tries again before one of them leaves; 0: nobody
        was turned away.
    full
        What there was no room for.
    """

    ratio: float
    since: int = 0
    full_at: int = 0
    full: Blocked = Blocked.NO


class Sglang(Scheduler):
    """While prompts can be admitted, iterations compute them, in chunks; else each decode computes a token.

    A request is admitted if its prompt and answer fit beside what is reserved for the answers of those who run: a share
    of their tokens still to come, which decays from 0.7 x *schedule_conservativeness* with every decode iteration. When
    the decodes run out of blocks all the same, those with the shortest answers so far go back to the end of the queue.

    Source: sglang 0.5 `managers/scheduler.py` (`get_new_batch_prefill`, `update_running_batch`),
    `managers/schedule_policy.py` (`PrefillAdder`), `managers/schedule_batch.py` (`retract_decode`), `environ.py`. Left
    out: that requests of one batch with a common new prefix wait for the first of them.
    """

    disaggregates: ClassVar[bool] = True

    kind: Literal["sglang"] = "sglang"
    max_num_batched_tokens: int = Field(
        8192, ge=1, description="Prompt tokens of an iteration; longer prompts are cut: chunked_prefill_size [tokens]."
    )
    chunked_prefill: bool = Field(True, description="Longer prompts are cut; off: chunked_prefill_size -1.")
    max_prefill_tokens: int = Field(
        16384, ge=1, description="Prompt tokens after which an iteration takes in no further prompt [tokens]."
    )
    max_num_seqs: int = Field(2048, ge=1, description="Most sequences that run at once: max_running_requests.")
    mixed_chunk: bool = Field(False, description="Decodes share the iteration of prompts: enable_mixed_chunk.")
    schedule_conservativeness: float = Field(
        1.0, gt=0, description="Factor on the share of future tokens that is reserved."
    )
    clip_max_new_tokens: int = Field(4096, ge=1, description="Most future tokens that count for a request [tokens].")
    longest_prefix_match: bool = Field(
        False, description="Longest cached prompt first, while at most 128 wait: schedule_policy lpm."
    )

    @property
    def longest_chunk(self) -> float:
        """Return the budget of an iteration."""
        return self.max_num_batched_tokens if self.chunked_prefill else math.inf

    def notes(self) -> _Notes:
        """Return the notes on a replica that has not run yet."""
        return _Notes(self._initial_ratio)

    def schedule(self, state: State) -> Decision:
        """Compute prompts if any can be; else decode, and retract where blocks lack."""
        if not state.running:
            state.notes = self.notes()
            state.notes.since = state.running.iteration
        decision = self._prefill(state)
        if decision.prefills or decision.decodes:
            return decision
        decoded = self._decode_all(state) or self._retract(state)
        decoded.blocked = decision.blocked
        if not decoded.decodes and state.running.prefilling:
            self._continue_prompt(state, decoded, self.longest_chunk)
        return decoded

    def _prefill(self, state: State) -> Decision:
        running = state.running
        decision = Decision()
        if self.mixed_chunk and running.decoding and (state.waiting or running.prefilling):
            decision = self._decode_all(state) or decision
            if not decision.decodes:
                return decision
        budget = self.longest_chunk - (running.decode_tokens if decision.decodes else 0)
        if running.prefilling:
            budget = self._continue_prompt(state, decision, budget)
        if budget > 0:
            self._admit(state, decision, budget)
        else:
            decision.blocked = Blocked.TOKEN_BUDGET
        return decision

    def _continue_prompt(self, state: State, decision: Decision, budget: float) -> float:
        """Compute the next chunk of the unfinished prompt; return what its end leaves of the *budget*, else nothing."""
        (request,) = state.running.prefilling
        rest = request.prefill_tokens - request.computed_tokens
        tokens = int(min(rest, budget, state.kv.room(request)))
        if tokens > 0:
            state.kv.grow(request, tokens)
            decision.prefills.append((request, tokens))
        return budget - tokens if tokens == rest else 0

    def _admit(self, state: State, decision: Decision, budget: float) -> None:
        notes, running, kv, waiting = state.notes, state.running, state.kv, state.waiting
        if not waiting:
            return
        if notes.full_at and len(running) >= notes.full_at:
            decision.blocked = notes.full
            return
        notes.full_at = 0
        if self.longest_prefix_match and len(waiting) <= _LPM_LIMIT:
            _sort_by_hits(state)
        reserved = self._reserved_tokens(running, self._ratio(state))
        while waiting:
            if len(running) >= self.max_num_seqs:
                notes.full_at, decision.blocked = len(running), Blocked.MAX_NUM_SEQS
                break
            request = waiting[0]
            hit = kv.hits(request)
            if request.remote_tokens:
                if not self._load(state, request, hit, reserved):
                    notes.full_at, decision.blocked = len(running), Blocked.KV_BLOCKS
                    break
                reserved += self._answer(request)
                continue
            whole = request.prefill_tokens - hit
            tokens = whole if whole <= budget else self._cut(budget, kv.block_size, alone=not running)
            left = self.max_prefill_tokens - sum(tokens for _, tokens in decision.prefills)
            if not tokens or (decision.prefills and whole >= left):
                decision.blocked = Blocked.TOKEN_BUDGET
                return
            answer = self._answer(request)
            if not self._take_in(state, request, hit, tokens, whole + answer, reserved):
                notes.full_at, decision.blocked = len(running), Blocked.KV_BLOCKS
                break
            running.admit(waiting.popleft())
            decision.prefills.append((request, tokens))
            budget -= tokens
            reserved += answer if tokens == whole else 0
        notes.full = decision.blocked

    def _answer(self, request: Request) -> int:
        """Return the tokens still to come that count for *request*."""
        return min(request.output_tokens - request.emitted_tokens, self.clip_max_new_tokens)

    def _load(self, state: State, request: Request, hit: int, reserved: float) -> bool:
        """Give *request* blocks for KV from another replica; return False if there are too few."""
        tokens = request.remote_tokens - hit
        if not self._take_in(state, request, hit, tokens, tokens + self._answer(request), reserved):
            return False
        state.load(request, hit)
        return True

    @staticmethod
    def _take_in(state: State, request: Request, hit: int, tokens: int, length: int, reserved: float) -> bool:
        """Give *request* blocks for *tokens* now if there is room for *length* beside what is *reserved*."""
        kv = state.kv
        if not state.running:
            return kv.admit(request, hit, tokens)
        return kv.admit(request, hit, tokens, room=length + kv.block_size, spare=math.ceil(reserved / kv.block_size))

    @staticmethod
    def _cut(budget: float, block_size: int, *, alone: bool) -> int:
        """Return the first chunk of a prompt that is longer than the *budget*: whole pages."""
        return int(budget // block_size * block_size or (budget if alone else 0))

    @property
    def _initial_ratio(self) -> float:
        return min(_NEW_TOKEN_RATIO * self.schedule_conservativeness, 1.0)

    def _ratio(self, state: State) -> float:
        """Return the share of future tokens that is reserved: it falls linearly with the decode iterations."""
        notes: _Notes = state.notes
        initial = self._initial_ratio
        lowest = initial * _MIN_RATIO_FACTOR
        decay = (state.running.iteration - notes.since) * (initial - lowest) / _DECAY_STEPS
        return max(notes.ratio - decay, lowest)

    def _reserved_tokens(self, running: Running, ratio: float) -> float:
        """Return what is reserved for the answers of those who decode; visits each, as the engine does."""
        left = (request.total_tokens - 1 - running.computed_tokens(request) for request in _decodes(running))
        reserved = sum(min(tokens, self.clip_max_new_tokens) for tokens in left)
        return ratio * (reserved + sum(map(self._answer, running.loading)))

    def _retract(self, state: State) -> Decision:
        """Preempt the shortest answers, of equal ones the longest prompts, until the others can decode."""
        running, decision = state.running, Decision(decodes=True)
        decodes = _decodes(running)
        for request in decodes:
            running.settle(request)
        decodes.sort(key=lambda request: (-request.emitted_tokens, request.input_tokens))
        while decodes and (not decision.preempted or running.blocks_now() > state.kv.free):
            self._preempt(state, decodes.pop(), decision)
        expected = sum(request.output_tokens for request in decodes) + 1
        emitted = sum(request.emitted_tokens for request in decodes) + _RETRACT_STEPS * len(decodes)
        state.notes = _Notes(min(emitted / expected, 1.0), running.iteration)
        decision.decodes = bool(decodes)
        state.kv.take(running.blocks_now())
        return decision

    def _preempt(self, state: State, victim: Request, decision: Decision) -> None:
        """Preempt *victim*, which queues up again as if it had just come."""
        super()._preempt(state, victim, decision)
        state.waiting.remove(victim)
        state.waiting.arrive(victim)


def _decodes(running: Running) -> list[Request]:
    prompts, loading = running.prefilling, running.loading
    return [request for request in running.order if request not in prompts and request not in loading]


def _sort_by_hits(state: State) -> None:
    """Order those who wait by the longest cached prefix, equal ones as before."""
    ordered = sorted(state.waiting, key=lambda request: -state.kv.hits(request))
    state.waiting.clear()
    state.waiting.extend(ordered)
