"""One replica: schedule, cost, complete, for ever."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from simpy import Event

from sim.batch import Batch, Blocked, Chunk
from sim.cluster.clock import ARRIVALS, BEGINNINGS, ENDS, Clock, Moment
from sim.cluster.deadlines import Deadlines, Timeouts
from sim.cluster.emissions import Emissions
from sim.cluster.grammars import Grammars
from sim.cluster.rebalanced import Rebalanced
from sim.cluster.stride import ListedStride, Stride
from sim.cost import Pace, StepCost
from sim.kv import KvCache
from sim.metrics.rows import StrideLog
from sim.request import Request, Status
from sim.scheduler import Decision, Queue, Running, Scheduler, Speculating, State

if TYPE_CHECKING:
    from sim.cluster.meter import Meter

__all__ = ["Replica"]


class Replica:
    """An engine that serves requests: a queue, a scheduler, a KV cache and the cost of its iterations.

    Parameters
    ----------
    index
        Number of the replica, from 0.
    max_model_len
        Longest sequence that the engine accepts, answer included [tokens].
    by_iteration
        Step every iteration by itself instead of in strides.
    timeouts
        After how long the engine gives requests up.
    more_to_come
        Tells whether any arrival is scheduled.
    on_done
        Called with every request that completes, is rejected or fails.
    on_change
        Called with *index* where an iteration begins or ends; None: nobody cares.
    on_load
        Called with a request that has got blocks for KV from another replica, and for how many tokens; `loaded` is to
        be called when it is there.
    lends
        Blocks of a finished request are held until `take_back` is called: their KV is sent to another replica.
    meter
        Counts what an autoscaler wants to know; None: there is none.
    compile_s
        How long the grammar of an answer is compiled where it is new [s].

    Attributes
    ----------
    outstanding, outstanding_tokens, pending_tokens
        As in `sim.router.Load`.
    """

    def __init__(
        self,
        env: Clock,
        index: int,
        scheduler: Scheduler,
        cost: StepCost,
        kv: KvCache,
        running: Running,
        log: StrideLog,
        *,
        max_model_len: int,
        by_iteration: bool,
        timeouts: Timeouts,
        more_to_come: Callable[[], bool],
        on_done: Callable[[Request], None],
        on_change: Callable[[int], None] | None = None,
        on_load: Callable[[Request, int], None] | None = None,
        lends: bool = False,
        meter: Meter | None = None,
        compile_s: float = 0.0,
    ) -> None:
        self.index = index
        self.outstanding = self.outstanding_tokens = self.pending_tokens = 0
        self._env, self._scheduler, self._cost, self._kv, self._log = env, scheduler, cost, kv, log
        self._placed = cost if isinstance(cost, Rebalanced) else None
        self._max_model_len, self._by_iteration = max_model_len, by_iteration
        self._more_to_come, self._on_done, self._on_change = more_to_come, on_done, on_change
        self._on_load, self._lends = on_load, lends
        self._deadlines = Deadlines(env, timeouts, self.give_up)
        self._state = State(Queue(scheduler.order), running, kv, scheduler.notes())
        kv.settle = running.settle
        self._emissions = Emissions()
        self._stride: Stride | None = None
        self._next: Moment | None = None
        self._leaving: list[Request] = []  # given up while running: they leave when the stride ends
        self._serving: dict[Request, None] = {}
        self._lost = False
        self._slowdown = 1.0
        self._moved: list[Request] = []  # their KV has come or gone, as is seen when the next iteration begins
        self._meter = meter
        self._grammars = Grammars(compile_s)

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._state.waiting)

    @property
    def running(self) -> int:
        """Requests that are admitted."""
        return len(self._state.running)

    @property
    def kv_usage(self) -> float:
        """Share of the KV blocks in use, those included that the iterations of the stride have taken until now."""
        used, stride = self._kv.used, self._stride
        if stride is not None and stride.iterations > 1:
            _, moved = self._state.running.blocks_moved(stride.iterations_until(self._env.now))
            used += moved
        return used / self._kv.num_blocks

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

    def wake(self) -> None:
        """Reconsider a batch that is held for arrivals, now that none is to come."""
        if self._stride is None and self._state.waiting:
            self._begin_at(self._env.now)

    def slow_down(self, factor: float) -> None:
        """Let every iteration from the next on take *factor* times as long as its cost says."""
        self._slowdown = factor
        if self._stride is not None:
            self._cut(self._stride)

    def lose(self) -> list[Request]:
        """Stop for ever, with the iteration under way undone; return whom it served, who keep what they have got."""
        self._lost = True
        self._halt()
        if self._stride is not None:
            self._break_off(self._stride)
        running = self._state.running
        for request in self._serving:
            self._deadlines.forget(request)
            if request.admission >= 0:
                if running.is_decoding(request):
                    self._emissions.leave(request)
                running.leave(request)
        self._state.waiting.clear()
        lost, self._serving = list(self._serving), {}
        return lost

    def _halt(self) -> None:
        if self._next is not None:
            self._next.cancel()

    def _break_off(self, stride: Stride) -> None:
        """Complete the iterations of *stride* that have ended before now; with prompts it has but one."""
        self._stride = None
        stride.iterations = stride.iterations_until(self._env.now) - 1
        if stride.iterations:
            self._complete_decodes(stride, stride.end_s())
            self._write(stride)

    def loaded(self, request: Request) -> None:
        """Let *request* decode from the next iteration on, now that its KV is there; it may have been preempted."""
        self._see(request)

    def take_back(self, request: Request) -> None:
        """Free the blocks of a finished *request*, whose KV has been sent."""
        self._see(request)

    def loads(self, request: Request) -> bool:
        """Tell whether *request* holds blocks for KV that is not there yet."""
        return request in self._state.running.loading

    def _see(self, request: Request) -> None:
        """Look at the KV of *request* before the next iteration."""
        self._moved.append(request)
        if self._stride is None:
            self._begin_at(self._env.now)
        else:
            self._cut(self._stride)

    def _refusal(self, request: Request) -> str:
        if request.total_tokens > self._max_model_len:
            return f"{request.total_tokens} tokens exceed max_model_len {self._max_model_len}"
        if not self._kv.fits(request):
            return f"{self._kv.most_blocks(request)} KV blocks needed, the pool has {self._kv.num_blocks}"
        return self._scheduler.never(request, self._kv)

    def _enqueue(self, request: Request) -> None:
        if request.status is Status.FAILED or self._lost:  # its client did not wait for the tokenisation
            return
        waiting, stride = self._state.waiting, self._stride
        refusal = self._scheduler.refusal(self._state)
        if refusal:
            request.status, request.reason = Status.REJECTED, refusal
            self._close(request)
            return
        waiting.arrive(request)
        if stride is None:
            self._begin_at(self._env.now)
            return
        blocked = stride.decision.blocked
        if blocked is Blocked.NO or (blocked is Blocked.KV_BLOCKS and waiting[0] is request):
            self._cut(stride)

    def give_up(self, request: Request, reason: str) -> None:
        """Serve *request* no longer: at once if it waits, from the end of the iteration on if it runs."""
        self._fail(request, reason)
        if request in self._state.running.loading:
            self._see(request)
            return
        if request.admission >= 0:
            self._leaving.append(request)
        elif request in self._state.waiting:
            self._state.waiting.remove(request)
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

    def _cut(self, stride: Stride) -> None:
        """End *stride* at the first boundary that sees what has just happened."""
        if stride.iterations == 1:
            return
        iterations = stride.iterations_until(self._env.now)
        if iterations < stride.iterations:
            stride.iterations = iterations
            self._schedule(stride.end_s(), self._end, ENDS)

    def _go_on(self) -> None:
        """Begin the next iteration now, after whatever else happens at this very instant."""
        if self._env.peek() > self._env.now:
            self._begin()
        else:
            self._begin_at(self._env.now)

    def _begin_at(self, at_s: float) -> None:
        self._schedule(at_s, self._begin, BEGINNINGS)

    def _schedule(self, at_s: float, action: Callable[[Event], None], rank: int) -> None:
        if self._next is not None:
            self._next.cancel()
        self._next = Moment(self._env, at_s, action, rank, self.index)

    def _begin(self, _moment: Event | None = None) -> None:
        """Schedule the next iteration, ask what it costs, and let time pass until it is done."""
        state = self._state
        self._next = None
        if self._moved:
            self._settle()
        if not state.running.order:
            if not state.waiting:
                return
            at_s = self._scheduler.starts_at(state.waiting, more_to_come=self._more_to_come())
            if at_s > self._env.now:
                if at_s < float("inf"):
                    self._begin_at(at_s)
                return
        decision = self._decide()
        if decision is not None:
            self._start(decision)

    def _decide(self) -> Decision | None:
        """Return what is computed next; None if that is nothing before KV has moved."""
        state = self._state
        decision = self._scheduler.schedule(state)
        if state.loads:
            self._load()
        if decision.prefills or state.running.decoding or state.running.padding:
            return decision
        self._note_exceptions(decision)
        if self._on_change is not None:
            self._on_change(self.index)
        return self._decide() if (decision.preempted or decision.failed) and state.waiting else None

    def _load(self) -> None:
        """Ask for the KV of those who have just got blocks for it."""
        assert self._on_load is not None
        loads, self._state.loads = self._state.loads, []
        for request, tokens in loads:
            self._on_load(request, tokens)

    def _settle(self) -> None:
        """See whose KV has come, and whose blocks are free now that it has gone."""
        moved, self._moved = self._moved, []
        for request in moved:
            if request in self._state.running.loading:
                self._join(request)
            elif self._lends:
                self._kv.release(request)
                self._kv.forget(request)

    def _join(self, request: Request) -> None:
        """Let *request*, whose KV is there, decode from now on, unless it was given up meanwhile."""
        if request.status is Status.FAILED:
            self._remove(request)
            return
        self._kv.publish(request)
        if request.computed_tokens == request.input_tokens and not request.emitted_tokens:
            request.emitted_tokens = 1
            request.first_token_s = request.last_token_s = self._env.now
        if request.emitted_tokens == request.output_tokens:
            self._finish(request)
        else:
            self._state.running.begin_decoding(request)
            self._emissions.join(request)

    def _start(self, decision: Decision) -> None:
        batch, waits = self._batch(decision), self._kv.load_s > 0
        pace = self._pace(batch)
        running = self._state.running
        if isinstance(running, Speculating) and not waits:
            stride = self._listed(running, decision, batch, pace)
        else:
            stride = self._stride_of(decision, batch, pace, self._horizon(decision, pace.iterations))
        self._next = Moment(self._env, stride.end_s(), self._end, ENDS, self.index)

    def _listed(self, running: Speculating, decision: Decision, batch: Batch, pace: Pace) -> Stride:
        """Enter a stride whose iterations emit and cost what was drawn for them."""
        iterations = self._horizon(decision, float("inf") if self._placed is None else self._placed.left)
        if iterations == 1:
            return self._stride_of(decision, batch, pace, 1)
        ahead = running.ahead(iterations)
        durations_s = self._cost.durations_s(batch, ahead.context_tokens, ahead.windows)
        stride = self._stride_of(decision, batch, pace, iterations)
        ends_s = np.cumsum(np.concatenate(([stride.start_s], durations_s * self._slowdown)))
        same = stride.start_s, pace, iterations, batch, decision, stride.waiting, stride.running, stride.steady_gaps
        self._stride = ListedStride(*same, ahead, ends_s)
        return self._stride

    def _pace(self, batch: Batch) -> Pace:
        """Return the time of *batch*; one that waits for blocks from elsewhere is not like the next."""
        windows = self._state.running.windows
        pace = self._cost.pace(batch, tuple([window.growing for window in windows]) if windows else ())
        if self._kv.load_s:
            pace = Pace(pace.first_s + self._kv.take_load_s(), pace.growth_s, 1)
        return pace if self._slowdown == 1 else pace.slowed(self._slowdown)

    def _stride_of(self, decision: Decision, batch: Batch, pace: Pace, iterations: int) -> Stride:
        """Enter the stride that begins now."""
        now_s = self._env.now
        if not decision.lasting:
            self._note_exceptions(decision)
        for request, _ in decision.prefills:
            if request.admitted_s != request.admitted_s:  # nan: its first admission
                request.admitted_s = now_s
        steady_gaps = self._emissions.at(now_s) if decision.decodes else 0
        waiting, running = len(self._state.waiting), len(self._state.running.order)
        self._stride = Stride(now_s, pace, iterations, batch, decision, waiting, running, steady_gaps)
        if self._on_change is not None:
            self._on_change(self.index)
        return self._stride

    def _note_exceptions(self, decision: Decision) -> None:
        """Note who emits no longer, who does again, and who was given up."""
        for request in decision.silenced:
            self._emissions.leave(request)
        for request in decision.resumed:
            self._emissions.join(request)
        for request in decision.failed:
            self._kv.forget(request)
            self._fail(request, request.reason)

    def _batch(self, decision: Decision) -> Batch:
        running = self._state.running
        chunks = tuple([Chunk(tokens, request.computed_tokens) for request, tokens in decision.prefills])
        padding, ending, masks = len(running.padding), 0, 0
        for request, tokens in decision.prefills:
            if request.computed_tokens + tokens == request.prefill_tokens:
                ending += 1
                masks += request.schema != ""
        decodes = running.decoding
        if not (decision.decodes and decodes):
            return Batch(chunks, padding=padding, sampled=ending, masks=masks)
        context, capped, each = running.context_tokens(), running.window_tokens(), running.tokens_each
        masks += running.structured * each
        return Batch(chunks, decodes, context, capped, padding, decodes * each + ending, masks, None, each)

    def _horizon(self, decision: Decision, pace_iterations: float) -> int:
        """Return how many iterations change nothing but the context lengths."""
        running = self._state.running
        if self._by_iteration or not decision.lasting:
            return 1
        head = self._state.waiting[0] if self._state.waiting else None
        if decision.blocked is Blocked.KV_BLOCKS and head is not None and not self._kv.lacks_for_good(head):
            return 1
        horizon = int(max(min(running.next_change(), decision.iterations, pace_iterations), 1))
        return running.within(horizon, self._kv.free, till_more=decision.blocked is Blocked.KV_BLOCKS)

    def _end(self, _moment: Event | None = None) -> None:
        """Complete the stride: tokens are emitted, finished requests leave, the next iteration begins."""
        stride, self._stride = self._stride, None
        assert stride is not None
        end_s = self._env.now
        finished = self._complete_decodes(stride, end_s) if stride.decision.decodes else []
        if stride.decision.prefills:
            finished += self._complete_prefills(stride.decision, end_s)
            finished.sort(key=lambda request: request.admission)
        self._write(stride)
        self._passed(stride.iterations)
        for request in finished:
            self._finish(request)
        if self._leaving:
            self._let_go()
        if self._scheduler.keeps_batch:
            self._dissolve()
        if self._on_change is not None:
            self._on_change(self.index)
        self._go_on()

    def _complete_decodes(self, stride: Stride, end_s: float) -> list[Request]:
        running, k = self._state.running, stride.iterations
        stride.emitted = running.emits(k)
        most, net = running.blocks_moved(k)
        if most or net:
            self._kv.move(most, net)
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
                request.first_token_s = end_s
                if self._meter is not None:
                    self._meter.first_token(end_s - request.arrival_s)
                if request.status is not Status.FAILED:
                    self.pending_tokens -= request.input_tokens - request.expected_hit_tokens
            request.last_token_s = end_s
            request.emitted_tokens += 1
            if request.emitted_tokens == request.output_tokens:
                finished.append(request)
            else:
                self._state.running.begin_decoding(request)
                self._emissions.join(request)
        return finished

    def _finish(self, request: Request) -> None:
        if self._scheduler.keeps_batch:
            self._state.running.pad(request)
        elif self._lends and request.status is not Status.FAILED:
            self._state.running.leave(request)
        else:
            self._remove(request)
        if request.status is not Status.FAILED:
            request.status = Status.COMPLETED
            self._close(request)

    def _let_go(self) -> None:
        """Let those leave who were given up during the stride and have not finished with it."""
        leaving, self._leaving = self._leaving, []
        running = self._state.running
        for request in leaving:
            if request.admission < 0 or request in running.padding:
                continue
            if running.is_decoding(request):
                self._emissions.leave(request)
            if self._scheduler.keeps_batch:
                running.pad(request)
            else:
                self._remove(request)

    def _remove(self, request: Request) -> None:
        self._state.running.leave(request)
        self._kv.release(request)
        self._kv.forget(request)

    def _dissolve(self) -> None:
        """Free the blocks of a static batch when its longest answer is done."""
        running = self._state.running
        if len(running.padding) == len(running):
            for request in list(running.order):
                self._remove(request)

    def _passed(self, iterations: int) -> None:
        """Count iterations towards the next placement of experts."""
        if self._placed is not None:
            self._placed.passed(iterations)

    def _write(self, stride: Stride) -> None:
        if self._meter is not None:
            self._meter.served(stride.end_s() - stride.start_s, stride.batch.prefill_tokens + stride.emitted)
        stride.write(self._log, self.index, self._kv.used)
