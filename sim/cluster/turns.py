"""Iterations that follow each other on the clock."""

from __future__ import annotations

from simpy import Event

from sim.cluster.clock import BEGINNINGS, ENDS, Clock, Moment
from sim.cluster.engine import Engine
from sim.cluster.iterations import Iterations
from sim.cluster.rebalanced import Rebalanced
from sim.cluster.stride import Stride
from sim.cluster.ties import Ties
from sim.cost import StepCost
from sim.metrics.stride_log import StrideLog
from sim.request import Request, Status
from sim.scheduler import Decision, State

__all__ = ["Turns"]


class Turns(Iterations):
    """Begins an iteration where there is something to compute, and ends it; a stride is cut where something happens."""

    def __init__(self, env: Clock, index: int, engine: Engine, cost: StepCost, log: StrideLog, ties: Ties) -> None:
        super().__init__(env, index, engine, cost, log, ties)
        self._more_to_come, self._on_load, self._lends = ties.more_to_come, ties.on_load, ties.lends
        self._next = Moment.unset(env, index)
        self._leaving: list[Request] = []  # given up while running: they leave when the stride ends
        self._moved: list[Request] = []  # their KV has come or gone, as is seen when the next iteration begins

    def wake(self) -> None:
        """Reconsider a batch that is held for arrivals, now that none is to come."""
        if self._stride is None and self._state.waiting:
            self._begin_at(self._env.now)

    def slow_down(self, factor: float) -> None:
        """Let every iteration from the next on take *factor* times as long as its cost says."""
        self._slowdown = factor
        if self._stride is not None:
            self._cut(self._stride)

    def loaded(self, request: Request) -> None:
        """Let *request* decode from the next iteration on, now that its KV is there; it may have been preempted."""
        self._see(request)

    def take_back(self, request: Request) -> None:
        """Free the blocks of a finished *request*, whose KV has been sent."""
        self._see(request)

    def loads(self, request: Request) -> bool:
        """Tell whether *request* holds blocks for KV that is not there yet."""
        return request in self._running.loading

    def _see(self, request: Request) -> None:
        """Look at the KV of *request* before the next iteration."""
        self._moved.append(request)
        if self._stride is None:
            self._begin_at(self._env.now)
        else:
            self._cut(self._stride)

    def _halt(self) -> None:
        self._next.cancel()

    def _cut(self, stride: Stride, later: int = 0) -> None:
        """End *stride* at the first boundary that sees what has just happened, or so many iterations *later*."""
        if stride.iterations == 1:
            return
        iterations = stride.iterations_until(self._env.now) + later
        if iterations < stride.iterations:
            stride.iterations = iterations
            self._next.set(stride.end_s(), self._end, ENDS)

    def _go_on(self) -> None:
        """Begin the next iteration now, after whatever else happens at this very instant."""
        if self._env.peek() > self._env.now:
            self._begin()
        else:
            self._begin_at(self._env.now)

    def _begin_at(self, at_s: float) -> None:
        self._next.set(at_s, self._begin, BEGINNINGS)

    def _begin(self, _moment: Event | None = None) -> None:
        """Schedule the next iteration, ask what it costs, and let time pass until it is done."""
        state = self._state
        if self._moved:
            self._settle()
        if state.late:
            self._take_in(state)
        if not state.running.order:
            if not state.waiting:
                return
            at_s = self._scheduler.starts_at(state.waiting, more_to_come=self._more_to_come())
            if at_s > self._env.now:
                if at_s < float("inf"):
                    self._begin_at(at_s)
                return
        decision = self._decide()
        if decision is None and state.late:  # nothing is computed meanwhile
            state.take_in()
            decision = self._decide()
        if decision is not None:
            stride = self._compose(decision)
            self._next.set(stride.end_s(), self._end, ENDS)

    def _take_in(self, state: State) -> None:
        """Let the next iteration see who came until it was decided, when the last one began; where nobody did, all."""
        if (ended := self._ended) is not None:
            state.take_in(ended.end_s(ended.iterations - 1))
        if not (state.running.order or state.waiting):
            state.take_in()

    def _decide(self) -> Decision | None:
        """Return what is computed next; None if that is nothing before KV has moved."""
        state = self._state
        decision = self._scheduler.schedule(state)
        if state.loads:
            self._load()
        if decision.prefills or self._running.decoding or self._running.padding:
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
            if request in self._running.loading:
                self._join(request)
            elif self._lends:
                self._kv.retire(request)

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
            self._running.begin_decoding(request)
            self._emissions.join(request)

    def _end(self, _moment: Event | None = None) -> None:
        """Complete the stride: tokens are emitted, finished requests leave, the next iteration begins."""
        stride, self._stride = self._stride, None
        assert stride is not None
        self._ended = stride
        finished = self._complete(stride, self._env.now)
        if self._placed is not None:
            self._passed(self._placed, stride.iterations)
        for request in finished:
            self._finish(request)
        if self._leaving:
            self._let_go()
        if self._scheduler.keeps_batch:
            self._dissolve()
        if self._on_change is not None:
            self._on_change(self.index)
        self._go_on()

    def _passed(self, placed: Rebalanced, iterations: int) -> None:
        """Count iterations towards the next placement of experts."""
        placed.passed(iterations)

    def _finish(self, request: Request) -> None:
        if self._scheduler.keeps_batch:
            self._running.pad(request)
        elif self._lends and request.status is not Status.FAILED:
            self._running.leave(request)
        else:
            self._remove(request)
        if request.status is not Status.FAILED:
            request.status = Status.COMPLETED
            self._close(request)

    def _let_go(self) -> None:
        """Let those leave who were given up during the stride and have not finished with it."""
        leaving, self._leaving = self._leaving, []
        running = self._running
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
        self._running.leave(request)
        self._kv.retire(request)

    def _dissolve(self) -> None:
        """Free the blocks of a static batch when its longest answer is done."""
        running = self._running
        if len(running.padding) == len(running):
            for request in list(running.order):
                self._remove(request)

    def _close(self, request: Request) -> None:
        """Tell that nothing more becomes of *request*; a replica knows whom."""
        raise NotImplementedError
