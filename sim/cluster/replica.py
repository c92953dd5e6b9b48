"""One replica: whom it serves, from the queue to the last token or the reason why not."""

from __future__ import annotations

import math

from sim.cluster.clock import ARRIVALS, Clock, Moment
from sim.cluster.deadlines import Deadlines
from sim.cluster.engine import Engine
from sim.cluster.grammars import Grammars
from sim.cluster.stride import Stride
from sim.cluster.ties import Ties
from sim.cluster.turns import Turns
from sim.cost import StepCost
from sim.metrics.stride_log import StrideLog
from sim.request import Request, Status

__all__ = ["Replica"]


class Replica(Turns):
    """An engine that serves requests: a queue, a scheduler, a KV cache and the cost of its iterations.

    Attributes
    ----------
    outstanding, outstanding_tokens, pending_tokens
        As in `sim.router.Load`.
    """

    def __init__(self, env: Clock, index: int, engine: Engine, cost: StepCost, log: StrideLog, ties: Ties) -> None:
        super().__init__(env, index, engine, cost, log, ties)
        self.outstanding = self.outstanding_tokens = 0
        self._max_model_len, self._on_done = engine.max_model_len, ties.on_done
        self._roomy = self._kv.holds(engine.max_model_len)
        self._deadlines = Deadlines(env, engine.timeouts, self.give_up)
        self._serving: dict[Request, None] = {}
        self._lost = False
        self._grammars = Grammars(engine.compile_s)
        self._decides_ahead = engine.decides_ahead

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return self._state.queued

    @property
    def running(self) -> int:
        """Requests that are admitted."""
        return len(self._running)

    @property
    def kv_usage(self) -> float:
        """Share of the KV blocks in use, those included that the iterations of the stride have taken until now."""
        used, stride = self._kv.used, self._stride
        if stride is not None and stride.iterations > 1:
            used += self._running.blocks_during(stride.iterations_until(self._env.now))
        return used / self._kv.num_blocks

    @property
    def kv_falls(self) -> bool:
        """Whether the use of KV blocks may fall while the same requests decode: windows leave some behind."""
        return self._kv.leaves_behind

    def under_way(self) -> tuple[float, int]:
        """Return for how long the stride has run [s], and how many tokens its iterations have computed until now."""
        stride, now_s = self._stride, self._env.now
        if stride is None:
            return 0.0, 0
        return now_s - stride.start_s, stride.batch.decodes * (stride.iterations_until(now_s) - 1)

    @property
    def kv_tokens(self) -> int:
        """Tokens that the KV cache has room for."""
        return self._kv.room_tokens

    def submit(self, request: Request) -> None:
        """Take *request* from the router at its `queued_s`: the engine sees it when HTTP and tokenisation are done."""
        request.replica = self.index
        reason = self._refusal(request)
        if reason:
            request.status, request.reason = Status.REJECTED, reason
            self._on_done(request)
            return
        self._serving[request] = None
        self.outstanding += 1
        self.outstanding_tokens += request.input_tokens
        self.pending_tokens += request.input_tokens - request.expected_hit_tokens
        self._deadlines.watch(request)
        if not request.remote_tokens:  # else the prefill replica has spent it
            delay_s = self._cost.admission_delay_s(request.input_tokens)
            request.queued_s += delay_s
            if self._meter is not None:
                self._meter.arrived(delay_s)
        if request.schema:
            request.queued_s = self._grammars.ready_s(request.schema, request.queued_s)
        if request.queued_s > self._env.now:
            Moment(self._env, request.queued_s, lambda _: self._enqueue(request), ARRIVALS)
        else:
            self._enqueue(request)

    def lose(self) -> list[Request]:
        """Stop for ever, with the iteration under way undone; return whom it served, who keep what they have got."""
        self._lost = True
        self._halt()
        if self._stride is not None:
            self._break_off(self._stride)
        running = self._running
        for request in self._serving:
            self._deadlines.forget(request)
            if request.admission >= 0:
                if running.is_decoding(request):
                    self._emissions.leave(request)
                running.leave(request)
        self._state.take_in()
        self._state.waiting.clear()
        lost, self._serving = list(self._serving), {}
        return lost

    def _break_off(self, stride: Stride) -> None:
        """Complete the iterations of *stride* that have ended before now; with prompts it has but one."""
        self._stride = None
        stride.iterations = stride.iterations_until(self._env.now) - 1
        if stride.iterations:
            self._complete_decodes(stride, stride.end_s())
            self._write(stride)

    def _refusal(self, request: Request) -> str:
        if request.total_tokens > self._max_model_len:
            return f"{request.total_tokens} tokens exceed max_model_len {self._max_model_len}"
        if not ((self._roomy and not request.remote_tokens) or self._kv.fits(request)):
            return f"{self._kv.most_blocks(request)} KV blocks needed, the pool has {self._kv.num_blocks}"
        return self._scheduler.never(request, self._kv)

    def _enqueue(self, request: Request) -> None:
        if request.status is Status.FAILED or self._lost:  # its client did not wait for the tokenisation
            return
        state, stride = self._state, self._stride
        refusal = self._scheduler.refusal(state)
        if refusal:
            request.status, request.reason = Status.REJECTED, refusal
            self._close(request)
            return
        if stride is None:
            state.waiting.arrive(request)
            self._begin_at(self._env.now)
            return
        if self._sees(request, stride.decision.blocked):
            self._cut(stride, later=int(self._decides_ahead))
        if self._decides_ahead:
            state.late.append((request, self._env.now))
        else:
            state.waiting.arrive(request)

    def give_up(self, request: Request, reason: str) -> None:
        """Serve *request* no longer: at once if it waits, from the end of the iteration on if it runs."""
        self._fail(request, reason)
        if request in self._running.loading:
            self._see(request)
            return
        if request.admission >= 0:
            self._leaving.append(request)
        elif self._state.withdraw(request):
            self._kv.forget(request)
        if self._stride is not None:
            self._cut(self._stride)

    def _fail(self, request: Request, reason: str) -> None:
        request.status, request.reason = Status.FAILED, reason
        self._close(request)

    def _close(self, request: Request) -> None:
        """Tell that nothing more becomes of *request*."""
        del self._serving[request]
        self.outstanding -= 1
        self.outstanding_tokens -= request.input_tokens
        if math.isnan(request.first_token_s):
            self.pending_tokens -= request.input_tokens - request.expected_hit_tokens
        self._deadlines.forget(request)
        self._on_done(request)
