"""Attention data parallel: ranks with queues and KV caches of their own, whose iterations begin and end together.

The routed experts of every layer are shared, so each layer waits for all ranks: an iteration lasts as long as that of
the slowest, and a rank without requests runs empty (vLLM's dummy batches).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from simpy import Event

from sim.batch import Batch
from sim.cluster.clock import BEGINNINGS, ENDS, Clock, Moment
from sim.cluster.rebalanced import Rebalanced
from sim.cluster.replica import Replica
from sim.cluster.stride import Stride
from sim.cost import Pace
from sim.scheduler import Decision

__all__ = ["Lockstep", "Rank", "slowest"]


class Rank(Replica):
    """One attention rank, which asks its *group* to begin and to cut strides."""

    group: Lockstep

    @property
    def patience(self) -> int:
        """Iterations for which its prompts wait until all ranks have some; 0: they do not."""
        return self._scheduler.patience

    @property
    def has_prompts(self) -> bool:
        """Whether anybody waits here for whom there is a place."""
        places = getattr(self._scheduler, "max_num_seqs", math.inf)
        return bool(self._state.waiting) and len(self._state.running) < places

    @property
    def has_answers(self) -> bool:
        """Whether anybody decodes here."""
        return self._state.running.decoding > 0

    def hold(self, *, held: bool) -> None:
        """Admit nobody while *held*."""
        self._state.held = held

    def decide(self) -> Decision | None:
        """Return what it computes next; None if it has no requests, or only such that wait for KV."""
        if self._moved:
            self._settle()
        state = self._state
        return self._decide() if state.running or state.waiting else None

    def batch_of(self, decision: Decision) -> Batch:
        """Return the work of *decision*."""
        return self._batch(decision)

    def splits(self, batch: Batch) -> bool:
        """Tell whether it would run *batch* as two halves that overlap."""
        return self._cost.splits(batch)

    def pace(self, batch: Batch) -> Pace:
        """Return the time of *batch* as if this rank alone were waited for."""
        return self._pace(batch)

    def horizon(self, decision: Decision, pace_iterations: float) -> int:
        """Return how many iterations change nothing on this rank."""
        return self._horizon(decision, pace_iterations)

    def begin(self, decision: Decision, batch: Batch, pace: Pace, iterations: int) -> Stride:
        """Enter a stride of the group."""
        return self._enter(decision, batch, pace, iterations)

    def end(self) -> None:
        """Complete the stride of the group, if it has a part in it."""
        if self._stride is not None:
            self._end()

    def shorten(self, iterations: int) -> None:
        """Let the stride of the group have fewer *iterations*."""
        if self._stride is not None:
            self._stride.iterations = iterations

    def _go_on(self) -> None:
        self.group.begin_at(self._env.now)

    def _begin_at(self, at_s: float) -> None:
        self.group.begin_at(at_s)

    def _cut(self, stride: Stride, later: int = 0) -> None:  # ranks decide nothing ahead, so that it is never later
        self.group.cut()

    def _passed(self, placed: Rebalanced, iterations: int) -> None:
        """Leave it to the group to count iterations."""

    def _halt(self) -> None:
        self.group.halt()


class Lockstep:
    """The attention ranks of one replica."""

    def __init__(self, env: Clock, ranks: Sequence[Rank], placed: Rebalanced | None = None) -> None:
        self._env, self._ranks, self._placed = env, ranks, placed
        self._stride: Stride | None = None
        self._next = Moment.unset(env, ranks[0].index)
        self._prefills = False
        self._patience = ranks[0].patience
        self._waited = 0  # iterations since prompts were last computed, or could have been
        for rank in ranks:
            rank.group = self

    def begin_at(self, at_s: float) -> None:
        """Begin an iteration at *at_s*; while one runs, at its end."""
        if self._stride is None:
            self._next.set(at_s, self._begin, BEGINNINGS)
        else:
            self.cut()

    def cut(self) -> None:
        """End the stride at the first boundary that sees what has just arrived."""
        stride = self._stride
        assert stride is not None
        iterations = stride.iterations_until(self._env.now)
        if iterations < stride.iterations:
            for rank in self._ranks:
                rank.shorten(iterations)
            self._next.set(stride.end_s(iterations), self._end, ENDS)

    def halt(self) -> None:
        """Stop for ever; all ranks are lost together."""
        self._stride = None
        self._next.cancel()

    def _begin(self, _moment: Event) -> None:
        """Let every rank schedule, ask what the slowest costs, and let time pass until all are done."""
        longest = self._hold() if self._patience else math.inf
        working = [(rank, decision) for rank in self._ranks if (decision := rank.decide()) is not None]
        if not working:
            return
        batches = [rank.batch_of(decision) for rank, decision in working]
        tokens = sum(batch.tokens for batch in batches)
        self._prefills = any(batch.chunks for batch in batches)
        splits = len(working) == len(self._ranks) and all(
            rank.splits(batch) for (rank, _), batch in zip(working, batches, strict=True)
        )
        batches = [replace(batch, group_tokens=tokens, whole=not splits) for batch in batches]
        pace = slowest([rank.pace(batch) for (rank, _), batch in zip(working, batches, strict=True)])
        pace = pace._replace(iterations=min(pace.iterations, longest))
        iterations = min(rank.horizon(decision, pace.iterations) for rank, decision in working)
        for (rank, decision), batch in zip(working, batches, strict=True):
            self._stride = rank.begin(decision, batch, pace, iterations)
        assert self._stride is not None
        self._next.set(self._stride.end_s(), self._end, ENDS)

    def _hold(self) -> float:
        """Let prompts wait unless all ranks have some, one has nothing to decode, or they have waited for long.

        Return for how many iterations at most that holds. The count goes on, and around, while there are no prompts.
        """
        self._waited %= self._patience
        prompts = [rank.has_prompts for rank in self._ranks]
        due = self._waited + 1 >= self._patience or not all(rank.has_answers for rank in self._ranks)
        computes = any(prompts) and (due or all(prompts))
        if computes:
            self._waited = 0
        for rank in self._ranks:
            rank.hold(held=not computes)
        return max(1, self._patience - 1 - self._waited) if any(prompts) else math.inf

    def _end(self, _moment: Event) -> None:
        stride, self._stride = self._stride, None
        if self._placed is not None and stride is not None:
            self._placed.passed(stride.iterations)
        if stride is not None:
            self._waited = 0 if self._prefills else self._waited + stride.iterations
        for rank in self._ranks:
            rank.end()


def slowest(paces: Sequence[Pace]) -> Pace:
    """Return the pace of iterations that wait for the slowest, until another one becomes it.

    The upper envelope of straight lines starts with the highest, of those the steepest.
    """
    first_s, growth_s = max((pace.first_s, pace.growth_s) for pace in paces)
    iterations = min(pace.iterations for pace in paces)
    for pace in paces:
        if pace.growth_s > growth_s:
            crossing = (first_s - pace.first_s) / (pace.growth_s - growth_s)
            iterations = min(iterations, math.floor(crossing) + 1)
    return Pace(first_s, growth_s, iterations)
