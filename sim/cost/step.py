"""The time of one iteration as the sum of its operations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from sim.batch import Batch
from sim.cost.attending import Attending, attending
from sim.cost.attention import DecodeAttention, PrefillAttention
from sim.cost.compositions import Composition, Compositions
from sim.cost.drafting import Drafting
from sim.cost.host import Delay, Host, pace_beside, pace_once
from sim.cost.operation import Operation, OperationTime, Seconds, Work
from sim.cost.pace import Pace, Rebalances
from sim.cost.padding import GraphPadding
from sim.cost.pipeline import ONE_STAGE, Pipeline, Rounds
from sim.cost.two_batches import TwoBatches
from sim.cost.uneven_experts import UnevenExperts

__all__ = ["RooflineStep"]


@dataclass(slots=True)
class RooflineStep:
    """Step cost of `Roofline`.

    Attributes
    ----------
    by_tokens, by_sequences
        Operations of the layers whose time depends on the computed tokens, or the computing sequences, alone.
    by_group
        Operations that all attention ranks do together, by the mean of their tokens, and those without padding.
    attention_ranks
        Ranks with batches of their own.
    head
        Operations that depend on the sampled sequences alone.
    transfers
        What passes between two stages of a pipeline, once for each pair; empty without a pipeline.
    tokens_each
        Tokens that a decode computes in an iteration, the mean of those with a draft and those without.
    drafting
        What a model computes that drafts; None where there is none.
    draft_s
        What drafting takes in every iteration, whatever it computes [s].
    two_batches
        How the halves of a batch overlap; None where the engine does not split it.
    rebalances
        The placements of experts whose mean this is; None where they stay where they are.
    padding
        Rows that fill a batch up to a captured graph; None: there are none.
    """

    by_tokens: tuple[Operation, ...]
    by_sequences: tuple[Operation, ...]
    decode: tuple[DecodeAttention, ...]
    prefill: tuple[PrefillAttention, ...]
    by_group: tuple[Operation, ...]
    head: tuple[Operation, ...]
    transfers: tuple[Operation, ...]
    pipeline: Pipeline
    host: Host
    delay: Delay
    windows: tuple[int, ...]
    attention_ranks: int = 1
    tokens_each: float = 1
    drafting: Drafting | None = None
    draft_s: float = 0.0
    two_batches: TwoBatches | None = None
    rebalances: Rebalances | None = None
    padding: GraphPadding | None = None
    _token_s: Seconds = field(init=False, repr=False)
    _sequence_s: Seconds = field(init=False, repr=False)
    _group_s: Seconds = field(init=False, repr=False)
    _head_s: Seconds = field(init=False, repr=False)
    _transfer_s: Seconds = field(init=False, repr=False)
    _compositions: Compositions = field(init=False, repr=False)
    _alone: bool = field(init=False, repr=False)
    _decode_s: float = field(init=False, repr=False)
    _sequence_decode_s: float = field(init=False, repr=False)
    _attending: dict[tuple[int, float, float], Attending] = field(init=False, repr=False)
    _full: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Sum up the coefficients of the affine part."""
        self._token_s, self._sequence_s = Seconds(self.by_tokens), Seconds(self.by_sequences)
        self._group_s = Seconds(self.by_group)
        self._head_s, self._transfer_s = Seconds(self.head), Seconds(self.transfers)
        self._compositions, self._attending = Compositions(self), {}
        self._alone = self.two_batches is None and self.drafting is None
        self._decode_s = sum(each.repeats * each.rates.launch_s for each in self.decode)
        self._sequence_decode_s = sum(each.repeats * each.seconds_per_sequence for each in self.decode)
        self._full = (0,) * len(self.windows)  # no decode is below a window

    def splits(self, batch: Batch) -> bool:
        """Tell whether *batch* is large enough to run as two halves that overlap."""
        return self.two_batches is not None and self.two_batches.splits(batch)

    def pace(self, batch: Batch, growing: tuple[int, ...] = ()) -> Pace:
        """Return the time of *batch* and its growth: each decode attends to one token more an iteration."""
        if self._separable(batch):
            gpu_s, attending, token_s, hidden_s, shown_s = self._composition(batch)
            if token_s is not None:
                gpu_s += token_s * batch.decode_context_tokens
            elif batch.decodes:
                gpu_s += attending.seconds(batch.decode_context_tokens, batch.decode_window_tokens)
            if batch.masks:
                hidden_s, shown_s = self.host.seconds(batch)
            if batch.chunks:
                return pace_once(gpu_s, hidden_s, shown_s)
            if token_s is not None:
                return pace_beside(gpu_s, token_s * batch.decodes, hidden_s, shown_s)
            growth = attending.growth(batch, growing or self._full)
            return pace_beside(gpu_s, growth.seconds, hidden_s, shown_s, growth.iterations)
        halved = self._halved(batch)
        if halved is None:
            gpu_s, attending = self.composed(batch)
            growth = attending.growth(batch, growing or self._full)
            return self.host.pace(batch, gpu_s, growth.seconds, growth.iterations)
        layers = halved.pace(batch, growing or self._full)
        beside_s = self._beside_layers_s(batch, *self.pipeline.split(batch))
        return self.host.pace(batch, layers.first_s + beside_s, layers.growth_s, layers.iterations)

    def durations_s(
        self, batch: Batch, context_tokens: NDArray[np.int64], windows: Sequence[NDArray[np.int64]]
    ) -> NDArray[np.float64]:
        """Return the times of iterations that differ from *batch* in their contexts [s]."""
        split, halved = self.pipeline.split(batch), self._halved(batch)
        if halved is not None:
            gpu_s = halved.durations_s(batch, context_tokens, windows) + self._beside_layers_s(batch, *split)
        else:
            gpu_s = self.gpu_s(batch) + self.attending(*split).more_s(batch, context_tokens, windows)
        if self.drafting is not None:
            gpu_s += self.drafting.more_s(batch, context_tokens, windows)
        return self.host.durations_s(batch, gpu_s)

    def _halved(self, batch: Batch) -> TwoBatches | None:
        found = self.two_batches
        return None if found is None or batch.whole or not found.splits(batch) else found

    def gpu_s(self, batch: Batch) -> float:
        """Return the time of *batch* without the host [s]."""
        if not self._separable(batch):
            return self.composed(batch)[0]
        known = self._composition(batch)
        if not batch.decodes:
            return known.gpu_s
        return known.gpu_s + known.attending.seconds(batch.decode_context_tokens, batch.decode_window_tokens)

    def _separable(self, batch: Batch) -> bool:
        """Tell whether the time of *batch* on the GPU is that of its composition and that of its decodes' context."""
        return self._alone and not batch.padding and batch.group_tokens is None

    def _composition(self, batch: Batch) -> Composition:
        return self._compositions[batch.chunks, batch.decodes, batch.tokens_each, batch.sampled]

    def composed(self, batch: Batch) -> tuple[float, Attending]:
        """Return the same as `gpu_s`, operation by operation, and the time of attending where no halves overlap."""
        work, rounds = self.pipeline.split(batch)
        attending, halved = self.attending(work, rounds), self._halved(batch)
        if halved is not None:
            return halved.pace(batch, self._full).first_s + self._beside_layers_s(batch, work, rounds), attending
        group_tokens, work = self._group_mean(batch, work), self._padded(work)
        layers_s = rounds.layers * self.layers_s(work, group_tokens)
        return layers_s + self._beside_layers_s(batch, work, rounds), attending

    def layers_s(self, work: Work, group_tokens: float) -> float:
        """Return the time of all layers for *work* [s], of which an average attention rank has *group_tokens*."""
        layers_s = self._token_s[work.tokens]
        if self.by_sequences:
            layers_s += self._sequence_s[work.sequences]
        if self.by_group:
            layers_s += self._group_s[group_tokens]
        if work.decodes:
            layers_s += self._decode_s + self._sequence_decode_s * work.decodes
            layers_s += self.attending(work).seconds(work.decode_context_tokens, work.decode_window_tokens)
        if work.chunks:
            for each in self.prefill:
                layers_s += each.repeats * each.demand(work).seconds
        return layers_s

    def _beside_layers_s(self, batch: Batch, work: Work, rounds: Rounds) -> float:
        """Return the time of the output head, between the stages of a pipeline, and of drafting [s]."""
        seconds = rounds.head * self._head_s[work.sampled] + self.draft_s
        if rounds.transfers:
            seconds += rounds.transfers * self._transfer_s[work.tokens]
        if self.drafting is not None:
            seconds += self.drafting.gpu_s(batch)
        return seconds

    def _group_mean(self, batch: Batch, work: Work) -> float:
        """Return the tokens of an average attention rank, of the microbatch where there is a pipeline."""
        if batch.group_tokens is None:
            return work.tokens
        return batch.group_tokens / self.attention_ranks * work.tokens / batch.tokens

    def _padded(self, work: Work) -> Work:
        """Return *work* with the rows that a graph adds."""
        return work if self.padding is None else self.padding.padded(work)

    def breakdown(self, batch: Batch) -> dict[str, float]:
        """Return the seconds of each operation; ``host`` is what the GPU does not hide."""
        seconds = {name: found.seconds for name, found in self.operations(batch).items()}
        seconds["host"] = self.host.exposed_s(batch, sum(seconds.values()))
        return {name: value for name, value in seconds.items() if value}

    def operations(self, batch: Batch) -> dict[str, OperationTime]:
        """Return what each operation on the GPU takes, and what it would take of each resource."""
        found: dict[str, OperationTime] = defaultdict(OperationTime)
        for times, each, work in self._operations(batch):
            found[each.name] = found[each.name].plus(times, each.demand(work))
        if drafting_s := self.draft_s + (0.0 if self.drafting is None else self.drafting.gpu_s(batch)):
            found["draft"] = OperationTime(drafting_s, fixed_s=drafting_s)
        return dict(found)

    def limits(self, batch: Batch) -> dict[str, float]:
        """Return the shares of the time bound by compute, memory, link, latency and host."""
        seconds: dict[str, float] = defaultdict(float)
        for times, each, work in self._operations(batch):
            for limit, value in each.demand(work).limits.items():
                seconds[limit] += times * value
        for limit, value in ({} if self.drafting is None else self.drafting.limits(batch)).items():
            seconds[limit] += value
        seconds["host"] = self.draft_s + self.host.exposed_s(batch, sum(seconds.values()) + self.draft_s)
        total_s = sum(seconds.values())
        return {limit: value / total_s for limit, value in seconds.items() if value}

    def imbalance_s(self, batch: Batch) -> float | None:
        """Return what the most loaded rank's rows beyond the mean of all ranks cost [s]; None without such experts."""
        lost_s = [
            times * each.excess_s(work)
            for times, each, work in self._operations(batch)
            if isinstance(each, UnevenExperts)
        ]
        return sum(lost_s) if lost_s else None

    def admission_delay_s(self, input_tokens: int) -> float:
        """Return the time from the client to the engine's queue [s]."""
        return self.delay.fixed_s + self.delay.per_prompt_token_s * input_tokens

    def attending(self, work: Work, rounds: Rounds = ONE_STAGE) -> Attending:
        """Return the time of attending by the contexts of a batch, of which a microbatch is *work*."""
        parts = work.decodes, rounds.layers, rounds.share
        found = self._attending.get(parts)
        if found is None:
            self._attending[parts] = found = attending(self.decode, len(self.windows), *parts)
        return found

    def _operations(self, batch: Batch) -> Iterator[tuple[float, Operation, Work]]:
        """Yield how often each operation of the iteration that has work runs, and the work."""
        work, rounds = self.pipeline.split(batch)
        halved = self._halved(batch)
        if halved is not None:
            yield from halved.operations(batch)
        else:
            group_tokens, work = self._group_mean(batch, work), self._padded(work)
            yield from self.layer_operations(work, group_tokens, rounds.layers)
        for operations, times, rows in (
            (self.head, rounds.head, work.sampled),
            (self.transfers, rounds.transfers, work.tokens),
        ):
            if rows:
                yield from ((times * each.repeats, each, work) for each in operations)

    def layer_operations(
        self, work: Work, group_tokens: float, times: float = 1.0
    ) -> Iterator[tuple[float, Operation, Work]]:
        """Yield the operations of all layers that have something to do, how often they run, and for what."""
        groups = (
            (self.by_tokens, work.tokens),
            (self.by_sequences, work.sequences),
            (self.decode, work.decodes),
            (self.prefill, len(work.chunks)),
        )
        for operations, rows in groups:
            if rows:
                yield from ((times * each.repeats, each, work) for each in operations)
        mean = replace(work, tokens=group_tokens)
        yield from ((times * each.repeats, each, mean) for each in self.by_group)
