"""The steady part of a run, by which it is judged.

A run starts empty and ends with a drain, both easier than what lies between them; and a closed loop begins with all its
users at once. So the objectives count requests that arrive after the warm-up, after every user has had a turn, and not
so late that the drain helps them. A request without an answer is later than any bound.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.metrics.first_turns import first_turns_over_s
from sim.metrics.gaps import gaps_between
from sim.metrics.latency import PERCENTILES, Distribution, Sample
from sim.simulate import Result
from sim.slo import SLO, Clause

__all__ = ["LATENCIES", "Window"]

Floats = NDArray[np.float64]

LATENCIES = ("ttft", "tpot", "itl", "e2el")
_BATCHES = 10
_FEWEST = 0.4  # share of the requests that must be left to judge by


@dataclass(frozen=True, slots=True)
class Window:
    """The steady part of a run: the *chosen* requests by rising arrival, and when it begins and ends [s]."""

    result: Result
    chosen: NDArray[np.int64]
    from_s: float
    to_s: float

    @classmethod
    def of(cls, result: Result) -> Window:
        """Find the steady part of a run; all of it where too little would be left."""
        requests, arrival_s = result.requests, result.requests.arrival_s
        order = np.argsort(arrival_s, kind="stable")
        last_s = float(arrival_s[order[-1]])
        started_s = first_turns_over_s(result.beginnings.slots_open_s, arrival_s)
        from_s = max(result.summary.steadiness.warm_up_s, started_s)
        to_s = last_s - _mean(requests.e2e_s)
        chosen = order[(arrival_s[order] >= from_s) & (arrival_s[order] <= to_s)]
        if len(chosen) < _FEWEST * len(order) or to_s <= from_s:  # offline, or overloaded all the way
            return cls(result, order, float(arrival_s[order[0]]), max(last_s, result.summary.simulated_s))
        return cls(result, chosen, from_s, to_s)

    @property
    def count(self) -> int:
        """How many of them were answered."""
        return int(self.answered.sum())

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Which of them were answered."""
        return self.result.requests.completed[self.chosen]

    def per_second(self, amount: float) -> float:
        """Return *amount* over the length of the part."""
        return float(amount) / (self.to_s - self.from_s)

    def prompt_tokens(self) -> float:
        """Return the tokens of answered prompts that were computed within the part: whose first token came in it."""
        requests, first_s = self.result.requests, self.result.requests.first_token_s
        within = (first_s >= self.from_s) & (first_s <= self.to_s) & requests.completed
        return float(requests.input_tokens[within].sum())

    def output_tokens(self) -> float:
        """Return the tokens of answers that came within the part, whenever their requests arrived.

        Users in step arrive in waves, a few of which a part holds: the tokens of what arrived in it would be some
        per cent more or fewer. Those after an answer's first are taken to come evenly.
        """
        requests = self.result.requests
        first_s, last_s = requests.first_token_s, requests.last_token_s
        within_s = np.minimum(last_s, self.to_s) - np.maximum(first_s, self.from_s)
        with np.errstate(divide="ignore", invalid="ignore"):  # an answer of one token takes no time
            share = np.clip(within_s / (last_s - first_s), 0.0, 1.0)
        first = (first_s >= self.from_s) & (first_s <= self.to_s)
        tokens = first + (requests.emitted_tokens - 1) * np.nan_to_num(share)
        return float(tokens[requests.completed].sum())

    def statistics(self) -> Iterator[tuple[str, float]]:
        """Yield mean and percentiles of the answered requests under their public keys [ms]."""
        for latency in LATENCIES:
            times = self._distribution(latency)
            yield f"mean_{latency}_ms", 1e3 * times.mean_s
            for prefix, percent in PERCENTILES.items():
                yield f"{prefix}_{latency}_ms", 1e3 * times.percentile(percent)

    def _distribution(self, latency: str) -> Distribution:
        if latency == "itl":
            return gaps_between(self.result.strides, self.from_s, self.to_s)
        return Sample.of(self._times_s(latency)[self.answered])

    @property
    def slo(self) -> SLO:
        """What the run is judged by."""
        return self.result.experiment.slo or SLO({})

    def shares(self) -> Iterator[tuple[str, float]]:
        """Yield the share that is found for each objective on one."""
        ratio = self.slo.worst_ratio(self.result.requests)[self.chosen]
        found = {"goodput": (ratio <= 1).mean(), "availability": self.answered.mean()}
        yield from ((name, float(found[name])) for name in self.slo.shares)

    def values_s(self) -> Iterator[tuple[str, float]]:
        """Yield the value of each objective by its name."""
        yield from ((clause.name, self.value_s(clause)) for clause in self.slo.clauses)
        for name, share in self.slo.shares.items():
            answered = float(self.answered.mean()) >= share
            yield name, self._goodput_ratio(share) if name == "goodput" else 0.0 if answered else math.inf

    def errors(self) -> Iterator[tuple[str, float | None]]:
        """Yield the standard error of the logarithm of each of them; None where it is not known."""
        yield from ((clause.name, self.error(clause)) for clause in self.slo.clauses)
        yield from ((name, None) for name in self.slo.shares)

    def _goodput_ratio(self, share: float) -> float:
        """Return the least factor on all bounds with which that *share* of the requests is within them."""
        ratio = np.sort(self.slo.worst_ratio(self.result.requests)[self.chosen])
        return float(ratio[max(math.ceil(share * len(ratio)) - 1, 0)])

    def value_s(self, clause: Clause) -> float:
        """Return the percentile that the *clause* asks for [s]; 0 if there is none, since answers have one token."""
        if clause.latency == "itl":
            return _percentile(self._distribution("itl"), 0, clause.percent)
        return self._percentile(clause, slice(None))

    def error(self, clause: Clause) -> float | None:
        """Return the standard error of the logarithm of `value_s`, from batches that follow each other."""
        batches_s = self._gap_batches(clause) if clause.latency == "itl" else self._batches(clause)
        if not batches_s or not all(math.isfinite(value) and value > 0 for value in batches_s):
            return None
        return float(np.std(np.log(batches_s), ddof=1)) / math.sqrt(len(batches_s))

    def _batches(self, clause: Clause) -> list[float]:
        parts = np.array_split(np.arange(len(self.chosen)), _BATCHES)
        if len(parts[-1]) * (1 - clause.percent / 100) < 1:
            return []
        return [self._percentile(clause, part) for part in parts]

    def _gap_batches(self, clause: Clause) -> list[float]:
        edges_s = np.linspace(self.from_s, self.to_s, _BATCHES + 1).tolist()
        parts = (gaps_between(self.result.strides, *pair) for pair in itertools.pairwise(edges_s))
        return [_percentile(gaps, 0, clause.percent) for gaps in parts]

    def _percentile(self, clause: Clause, part: slice | NDArray[np.int64]) -> float:
        answered = self.answered[part]
        times_s = self._times_s(clause.latency)[part][answered]
        return _percentile(Sample.of(times_s), int((~answered).sum()), clause.percent)

    def _times_s(self, latency: str) -> Floats:
        requests = self.result.requests
        times_s: Floats = {"ttft": requests.ttft_s, "tpot": requests.tpot_s, "e2el": requests.e2e_s}[latency]
        return times_s[self.chosen]


def _percentile(times: Distribution, unanswered: int, percent: float) -> float:
    """Return the *percent* percentile of *times* and as many infinite ones [s]; 0 of none."""
    if not times.count:
        return math.inf if unanswered else 0.0
    rank = (times.count + unanswered - 1) * percent / 100
    if math.ceil(rank) >= times.count:
        return math.inf if unanswered else times.percentile(100)
    return times.percentile(100 * rank / (times.count - 1)) if times.count > 1 else times.percentile(0)


def _mean(times_s: Floats) -> float:
    known_s = times_s[~np.isnan(times_s)]
    return float(known_s.mean()) if len(known_s) else 0.0
