"""The iterations of one replica: what each computes, what it costs, and what is complete when it is done."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sim.batch import Batch, Blocked, Chunk
from sim.cluster.clock import Clock
from sim.cluster.emissions import Emissions
from sim.cluster.engine import Engine
from sim.cluster.rebalanced import Rebalanced
from sim.cluster.stride import Stride
from sim.cluster.ties import Ties
from sim.cost import Pace, StepCost
from sim.metrics.stride_log import StrideLog
from sim.request import Request, Status
from sim.scheduler import Decision, Queue, Speculating, State

__all__ = ["Iterations"]


class Iterations:
    """Composes strides from what a scheduler decides, and completes them; when that happens its `Replica` says.

    Parameters
    ----------
    index
        Number of the replica, from 0.
    cost
        What its iterations cost: the *engine*'s own, or what rebalancing makes of it.

    Attributes
    ----------
    pending_tokens
        As in `sim.router.Load`.
    """

    def __init__(self, env: Clock, index: int, engine: Engine, cost: StepCost, log: StrideLog, ties: Ties) -> None:
        self.index = index
        self.pending_tokens = 0
        self._env, self._scheduler, self._cost, self._log = env, engine.scheduler, cost, log
        self._kv, self._running = engine.kv_cache(), engine.running()
        self._placed = cost if isinstance(cost, Rebalanced) else None
        self._by_iteration, self._on_change, self._meter = bool(engine.single_steps), ties.on_change, ties.meter
        self._state = State(Queue(self._scheduler.order), self._running, self._kv, self._scheduler.notes())
        self._kv.settle = self._running.settle
        self._emissions = Emissions()
        self._stride: Stride | None = None
        self._ended: Stride | None = None
        self._slowdown = 1.0

    def _compose(self, decision: Decision) -> Stride:
        """Enter the stride that begins now with *decision*."""
        batch, waits = self._batch(decision), self._kv.load_s > 0
        pace = self._pace(batch)
        if isinstance(self._running, Speculating) and not waits:
            return self._listed(self._running, decision, batch, pace)
        return self._enter(decision, batch, pace, self._horizon(decision, pace.iterations))

    def _batch(self, decision: Decision) -> Batch:
        """Return the work of *decision*."""
        running = self._running
        batch = running.batch() if decision.decodes and running.decoding else Batch()
        if running.padding:
            batch.padding = len(running.padding)
        if decision.prefills:
            batch.chunks = tuple([Chunk(tokens, request.computed_tokens) for request, tokens in decision.prefills])
            for request, tokens in decision.prefills:
                if request.computed_tokens + tokens == request.input_tokens + request.emitted_tokens:
                    batch.sampled += 1
                    if request.schema:
                        batch.masks += 1
        return batch

    def _pace(self, batch: Batch) -> Pace:
        """Return the time of *batch*; one that waits for blocks from elsewhere is not like the next."""
        windows = self._running.windows
        pace = self._cost.pace(batch, tuple([window.growing for window in windows]) if windows else ())
        if self._kv.load_s:
            pace = Pace(pace.first_s + self._kv.take_load_s(), pace.growth_s, 1)
        return pace if self._slowdown == 1 else pace.slowed(self._slowdown)

    def _horizon(self, decision: Decision, pace_iterations: float) -> int:
        """Return how many iterations change nothing but the context lengths."""
        if self._by_iteration or not decision.lasting:
            return 1
        running, waiting, late = self._running, self._state.waiting, self._state.late
        if late and any(self._sees(request, decision.blocked) for request, _ in late):
            return 1
        starved = decision.blocked is Blocked.KV_BLOCKS
        if starved and waiting and not self._kv.lacks_for_good(waiting[0]):
            return 1
        horizon, limit = int(running.next_change()), min(decision.iterations, pace_iterations)
        if limit < horizon:
            horizon = max(int(limit), 1)
        return running.within(horizon, self._kv.free, till_more=starved)

    def _sees(self, request: Request, blocked: Blocked) -> bool:
        """Tell whether the scheduler would look at *request*, which is to join a queue that was *blocked*."""
        return blocked is Blocked.NO or (blocked is Blocked.KV_BLOCKS and self._state.waiting.leads(request))

    def _listed(self, running: Speculating, decision: Decision, batch: Batch, pace: Pace) -> Stride:
        """Enter a stride whose iterations emit and cost what was drawn for them."""
        iterations = self._horizon(decision, float("inf") if self._placed is None else self._placed.left)
        if iterations == 1:
            return self._enter(decision, batch, pace, 1)
        ahead = running.ahead(iterations)
        durations_s = self._cost.durations_s(batch, ahead.context_tokens, ahead.windows)
        stride = self._enter(decision, batch, pace, iterations)
        ends_s = np.cumsum(np.concatenate(([stride.start_s], durations_s * self._slowdown)))
        self._stride = stride.listed(ahead, ends_s)
        return self._stride

    def _enter(self, decision: Decision, batch: Batch, pace: Pace, iterations: int) -> Stride:
        """Enter the stride that begins now."""
        now_s = self._env.now
        for request, _ in decision.prefills:
            if request.admitted_s != request.admitted_s:  # nan: its first admission
                request.admitted_s = now_s
        if decision.exceptional:
            self._note_exceptions(decision)
        steady_gaps = self._emissions.at(now_s) if batch.decodes else 0
        state = self._state
        waiting, running = len(state.waiting) + len(state.late), len(self._running.order)
        first_s, growth_s, _ = pace
        stride = Stride(now_s, first_s, growth_s, iterations, batch, decision, waiting, running, steady_gaps)
        self._stride = stride
        if self._on_change is not None:
            self._on_change(self.index)
        return stride

    def _note_exceptions(self, decision: Decision) -> None:
        """Note who emits no longer, who does again, and who was given up."""
        for request in decision.silenced:
            self._emissions.leave(request)
        for request in decision.resumed:
            self._emissions.join(request)
        for request in decision.failed:
            self._kv.forget(request)
            self._fail(request, request.reason)

    def _complete(self, stride: Stride, end_s: float) -> Sequence[Request]:
        """Let *stride* have emitted its tokens; return those who have finished with it, in admission order."""
        decision = stride.decision
        finished = self._complete_decodes(stride, end_s) if decision.decodes else []
        if decision.prefills:
            finished += self._complete_prefills(decision, end_s)
            if len(finished) > 1:
                finished.sort(key=lambda request: request.admission)
        self._write(stride)
        return finished

    def _complete_decodes(self, stride: Stride, end_s: float) -> list[Request]:
        running, k = self._running, stride.iterations
        stride.emitted = running.emits(k)
        most, net = running.blocks_moved(k)
        if most or net:
            self._kv.move(most, net)
        if stride.steady_gaps == stride.batch.decodes:
            self._emissions.go_on(end_s, stride.steady_gaps)
        else:
            first_s = stride.end_s(1)
            for gap_s, count in self._emissions.emit(first_s, end_s):
                if count and gap_s != first_s - stride.start_s:
                    self._log.odd_gap(gap_s, count)
        finished = running.advance(k)
        for request in finished:
            self._emissions.leave(request)
        return finished

    def _complete_prefills(self, decision: Decision, end_s: float) -> list[Request]:
        finished = []
        for request, tokens in decision.prefills:
            self._kv.computed(request, tokens)
            if request.computed_tokens < request.prefill_tokens:
                continue
            if request.emitted_tokens:
                self._log.odd_gap(end_s - request.last_token_s)
            else:
                self._begin_answer(request, end_s)
            request.last_token_s = end_s
            request.emitted_tokens += 1
            if request.emitted_tokens == request.output_tokens:
                finished.append(request)
            else:
                self._running.begin_decoding(request)
                self._emissions.join(request)
        return finished

    def _begin_answer(self, request: Request, at_s: float) -> None:
        """Let *request* emit its first token."""
        request.first_token_s = at_s
        if self._meter is not None:
            self._meter.first_token(at_s - request.arrival_s)
        if request.status is not Status.FAILED:
            self.pending_tokens -= request.input_tokens - request.expected_hit_tokens

    def _write(self, stride: Stride) -> None:
        if self._meter is not None:
            self._meter.served(stride.end_s() - stride.start_s, stride.batch.prefill_tokens + stride.emitted)
        stride.write(self._log, self.index, self._kv.used)

    def _fail(self, request: Request, reason: str) -> None:
        """Serve *request* no longer; a replica knows what follows from that."""
        raise NotImplementedError
