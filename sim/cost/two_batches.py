"""Two halves of a batch: while the tokens of one are on their way to experts or back, the other computes.

vLLM calls it dual batch overlap, SGLang two-batch overlap. The schedule is vLLM's (``docs/design/dbo.md``), in each
layer with routed experts:

=====================================================  ======================
computed                                               meanwhile on its way
=====================================================  ======================
attention of the first half                            dispatch of the second
experts of the second                                  dispatch of the first
shared experts of the second, experts of the first     combine of the second
shared experts of the first, attention of the second   combine of the first
=====================================================  ======================

Each line lasts as long as the longer of both, and a share (`SLOWED`) of the shorter; the time that the library keeps
the accelerator to itself (`Exchange.occupied_s`) counts as computed. Twice as many launches, and weights that are read
twice, come from the halves: few tokens lose by it, in real engines too (vLLM pull request 23693: two halves bound by
memory take twice the time; issue 56126: decodes of a dense model gain above some 128), whose thresholds are low.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.batch import Batch, Chunk
from sim.cost.all_to_all import Exchange
from sim.cost.operation import Operation, Seconds, Work
from sim.cost.pace import Pace
from sim.cost.pipeline import ONE_STAGE

if TYPE_CHECKING:
    from sim.cost.attending import Attending, Growth
    from sim.cost.step import RooflineStep

__all__ = ["SLOWED", "MixtureLayers", "Thresholds", "TwoBatches", "halves"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SLOWED = 0.15
"""Share of the shorter of what computes and what is on its way that the longer takes more: they share memory and links.

So that 256 sequences gain 27 % (published 25.5) and prompts of 8,192 tokens 32 % (27 to 35; lmsys.org, 2025-05-05).
"""


class Thresholds(NamedTuple):
    """Tokens of a rank from which on its batch is split: of one that only decodes, and of one with prompts."""

    decode_tokens: int
    prefill_tokens: int


class _Half(NamedTuple):
    """What a rank computes of one half, and how many tokens an average rank has there."""

    work: Work
    group_tokens: float


class _Slot(NamedTuple):
    """What computes, beside what is on its way [s], and which half's attention is among it, if any."""

    compute_s: float
    moving_s: float
    half: int | None = None

    @property
    def seconds(self) -> float:
        """How long both take together [s]."""
        return float(_together_s(self.compute_s, self.moving_s))


@dataclass(slots=True)
class MixtureLayers:
    """Layers of one kind with routed experts.

    Attributes
    ----------
    before
        All that comes before the experts: attention, its norms and the router.
    shared, experts
        What every token passes, and the routed experts.
    there, back
        Dispatch and combine.
    """

    before: RooflineStep
    shared: tuple[Operation, ...]
    experts: tuple[Operation, ...]
    there: Exchange
    back: Exchange
    _shared_s: Seconds = field(init=False, repr=False)
    _expert_s: Seconds = field(init=False, repr=False)
    _moving_s: dict[float, tuple[float, float, float, float]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Make what remembers times."""
        self._shared_s, self._expert_s, self._moving_s = Seconds(self.shared), Seconds(self.experts), {}

    def slots(self, halves: tuple[_Half, _Half]) -> tuple[_Slot, ...]:
        """Return the four lines of the schedule, for all of these layers."""
        before_s = [self.before.layers_s(*half) for half in halves]
        shared_s = [self._shared_s[half.work.tokens] for half in halves]
        expert_s = [self._expert_s[half.group_tokens] for half in halves]
        there0, taken_there0, back0, taken_back0 = self._moving(halves[0].group_tokens)
        there1, taken_there1, back1, taken_back1 = self._moving(halves[1].group_tokens)
        return (
            _Slot(before_s[0] + taken_there1, there1, 0),
            _Slot(expert_s[1] + taken_there0, there0),
            _Slot(shared_s[1] + expert_s[0] + taken_back1, back1),
            _Slot(shared_s[0] + before_s[1] + taken_back0, back0, 1),
        )

    def operations(self, half: _Half) -> Iterator[tuple[float, Operation, Work]]:
        """Yield what one half computes; the exchanges are not among it."""
        yield from self.before.layer_operations(*half)
        mean = replace(half.work, tokens=half.group_tokens)
        yield from ((each.repeats, each, half.work) for each in self.shared)
        yield from ((each.repeats, each, mean) for each in self.experts)

    def _moving(self, tokens: float) -> tuple[float, float, float, float]:
        found = self._moving_s.get(tokens)
        if found is None:
            work = Work(tokens, tokens, tokens, 0, 0, (), ())
            there_s, back_s = (way.demand(work).seconds for way in (self.there, self.back))
            taken = [way.occupied_s(work) for way in (self.there, self.back)]
            count = self.there.repeats
            found = (count * there_s, count * taken[0], count * back_s, count * taken[1])
            self._moving_s[tokens] = found
        return found


@dataclass(frozen=True, slots=True)
class TwoBatches:
    """The layers of a step when its batch is split.

    Attributes
    ----------
    rest
        Layers without routed experts: one half after the other.
    mixtures
        Layers with them, by kind.
    """

    rest: RooflineStep
    mixtures: tuple[MixtureLayers, ...]
    thresholds: Thresholds

    def splits(self, batch: Batch) -> bool:
        """Tell whether *batch* is split, as far as its own rank has a say."""
        least = self.thresholds.prefill_tokens if batch.chunks else self.thresholds.decode_tokens
        return batch.tokens >= least and batch.decodes + batch.prefill_tokens > 1

    def pace(self, batch: Batch, growing: tuple[int, ...]) -> Pace:
        """Return the time of all layers and how it grows, until the next exchange no longer hides what grows."""
        parts = self._parts(batch)
        growths = [_growth(self.rest, part.work, batch, growing) for part in parts]
        first_s = sum(self.rest.layers_s(*part) for part in parts)
        growth_s, iterations = sum(each.seconds for each in growths), min(each.iterations for each in growths)
        for kind in self.mixtures:
            added = [_growth(kind.before, part.work, batch, growing) for part in parts]
            iterations = min(iterations, *(each.iterations for each in added))
            for slot in kind.slots(parts):
                first_s += slot.seconds
                own_s = 0.0 if slot.half is None else added[slot.half].seconds
                if slot.compute_s >= slot.moving_s:
                    growth_s += own_s
                elif own_s:
                    growth_s += SLOWED * own_s
                    iterations = min(iterations, math.floor((slot.moving_s - slot.compute_s) / own_s) + 1)
        return Pace(first_s, growth_s, iterations)

    def durations_s(self, batch: Batch, context_tokens: Integers, windows: Sequence[Integers]) -> Floats:
        """Return the times of iterations whose decodes have these contexts, other than those of *batch* [s]."""
        parts = self._parts(batch)

        def more_s(step: RooflineStep, part: _Half) -> Floats:
            return _attending(step, part.work, batch).more_s(batch, context_tokens, windows)

        total_s = np.add.reduce([self.rest.layers_s(*part) + more_s(self.rest, part) for part in parts])
        for kind in self.mixtures:
            more = [more_s(kind.before, part) for part in parts]
            for slot in kind.slots(parts):
                compute_s = slot.compute_s + (0.0 if slot.half is None else more[slot.half])
                total_s = total_s + _together_s(compute_s, slot.moving_s)
        return np.asarray(total_s)

    def operations(self, batch: Batch) -> Iterator[tuple[float, Operation, Work]]:
        """Yield how often each operation runs and for what; exchanges as often as it takes for what shows of them."""
        parts = self._parts(batch)
        for part in parts:
            yield from self.rest.layer_operations(*part)
        for kind in self.mixtures:
            computing = [each for part in parts for each in kind.operations(part)]
            yield from computing
            computing_s = sum(times * each.demand(work).seconds for times, each, work in computing)
            exposed_s = sum(slot.seconds for slot in kind.slots(parts)) - computing_s
            moving = [(way, replace(part.work, tokens=part.group_tokens))
                      for way in (kind.there, kind.back) for part in parts]  # fmt: skip
            moving_s = sum(way.demand(work).seconds for way, work in moving)
            yield from ((exposed_s / moving_s, way, work) for way, work in moving)

    def _parts(self, batch: Batch) -> tuple[_Half, _Half]:
        first, second = halves(batch)
        group = batch.tokens if batch.group_tokens is None else batch.group_tokens / self.rest.attention_ranks
        return _Half(first, group * first.tokens / batch.tokens), _Half(second, group * second.tokens / batch.tokens)


def _attending(step: RooflineStep, work: Work, batch: Batch) -> Attending:
    """Return the time of attending of one half, by the contexts of the whole batch."""
    share = work.decodes / batch.decodes if batch.decodes else 1.0
    return step.attending(work, ONE_STAGE._replace(share=share))


def _growth(step: RooflineStep, work: Work, batch: Batch, growing: tuple[int, ...]) -> Growth:
    return _attending(step, work, batch).growth(batch, growing)


def _together_s(compute_s: float | Floats, moving_s: float) -> Floats:
    return np.maximum(compute_s, moving_s) + SLOWED * np.minimum(compute_s, moving_s)


def halves(batch: Batch) -> tuple[Work, Work]:
    """Return the two halves of *batch*: its tokens in order, decodes first, cut in the middle of a prompt if need be.

    The contexts of decodes are taken as equal.
    """
    each, middle = batch.tokens_each, batch.tokens // 2
    decodes = min(batch.decodes, max(1, int(middle // each)))
    left = int(middle - decodes * each) if decodes == batch.decodes else 0
    before: list[Chunk] = []
    after: list[Chunk] = []
    for chunk in batch.chunks:
        here = min(max(left, 0), chunk.tokens)
        left -= here
        if here:
            before.append(Chunk(here, chunk.past))
        if here < chunk.tokens:
            after.append(Chunk(chunk.tokens - here, chunk.past + here))
    return _work(batch, decodes, before), _work(batch, batch.decodes - decodes, after)


def _work(batch: Batch, decodes: int, chunks: Sequence[Chunk]) -> Work:
    share = decodes / batch.decodes if batch.decodes else 0.0
    return Work(
        decodes * batch.tokens_each + sum(chunk.tokens for chunk in chunks),
        0,
        decodes + len(chunks),
        decodes,
        share * batch.decode_context_tokens,
        tuple(share * tokens for tokens in batch.decode_window_tokens),
        tuple(chunks),
    )
