"""Two or more deployments side by side: by how much they differ, how surely, and why."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sim.experiment import Experiment
from sim.simulate import simulate
from sim.study.played import Played, from_result
from sim.study.sentences import explain
from sim.study.why import Anatomy, anatomy_of

__all__ = ["METRICS", "Comparison", "Difference", "Side", "compare", "play_seeds"]

METRICS = (
    *("output_throughput", "output_tok_s_per_gpu", "request_throughput", "request_goodput"),
    *(f"{prefix}_{name}_ms" for name in ("ttft", "tpot", "e2el") for prefix in ("mean", "p95")),
    *("running_mean", "kv_utilization_peak", "preemptions"),
    *("cost_usd_per_mtok_output", "energy_j_per_output_tok", "facility_power_w"),
)
"""Results that are compared, by their public keys."""
_CONFIDENCE = 0.90
_BATCHES = 10
_TWINS = {"mean_ttft_ms": "ttft_s", "mean_tpot_ms": "tpot_s", "mean_e2el_ms": "e2e_s"}
"""Means that twins among the requests tell the difference of, and their column."""


@dataclass(frozen=True)
class Side:
    """One deployment: its runs, one a seed."""

    name: str
    runs: Sequence[Played]

    @cached_property
    def anatomy(self) -> Anatomy:
        """Where the time of its first run goes."""
        return anatomy_of(self.runs[0])

    def mean(self, key: str) -> float | None:
        """Return the mean of a result over the runs; None where one has none."""
        values = [run.values.get(key) for run in self.runs]
        known = [float(value) for value in values if isinstance(value, int | float) and math.isfinite(value)]
        return sum(known) / len(known) if len(known) == len(values) else None


@dataclass(frozen=True, slots=True)
class Difference:
    """One result of two deployments; the interval holds the difference *other* - *base* with 90 %.

    *low* and *high* are None where a single run does not tell.
    """

    key: str
    base: float
    other: float
    low: float | None
    high: float | None

    @property
    def ratio(self) -> float:
        """The other over the base."""
        return self.other / self.base if self.base else math.nan

    @property
    def sure(self) -> bool | None:
        """Whether the interval leaves out 0; None without one."""
        return None if self.low is None or self.high is None else not self.low <= 0 <= self.high

    def as_dict(self) -> dict[str, Any]:
        """Return it under its public keys."""
        interval = None if self.low is None else [self.low, self.high]
        return {"base": self.base, "other": self.other, "ratio": self.ratio, "interval": interval, "sure": self.sure}


@dataclass(frozen=True, slots=True)
class Comparison:
    """The first of the *sides* against each other one."""

    sides: Sequence[Side]
    differences: Sequence[Mapping[str, Difference]]

    @property
    def base(self) -> Side:
        """What the others are compared with."""
        return self.sides[0]

    def pairs(self) -> Iterator[tuple[Side, Mapping[str, Difference]]]:
        """Yield every other side with its differences."""
        yield from zip(self.sides[1:], self.differences, strict=True)

    def sentences(self) -> list[str]:
        """Return what a manager should know, a pair after the other."""
        return [
            sentence
            for side, differences in self.pairs()
            for sentence in explain((self.base.name, self.base.anatomy), (side.name, side.anatomy), differences)
        ]

    def notes(self) -> list[str]:
        """Return what is not known, and why."""
        return list(dict.fromkeys(run.why_not for side in self.sides for run in side.runs if run.why_not))

    def as_dict(self) -> dict[str, Any]:
        """Return it under its public keys."""
        return {
            "base": self.base.name,
            "runs": [len(side.runs) for side in self.sides],
            "sides": [_anatomy(side) for side in self.sides],
            "differences": [
                {"other": side.name, **{key: each.as_dict() for key, each in differences.items()}}
                for side, differences in self.pairs()
            ],
            "sentences": self.sentences(),
            "notes": self.notes(),
        }


def compare(sides: Sequence[Side]) -> Comparison:
    """Compare the first of at least two *sides* with each other one."""
    return Comparison(sides, [_differences(sides[0], side) for side in sides[1:]])


def play_seeds(
    name: str, experiment: Experiment, seeds: Sequence[int], on_run: Callable[[], None] | None = None
) -> Side:
    """Run *experiment* once for each of the *seeds*, and call *on_run* after each; raise as `simulate` does."""
    runs = []
    for seed in seeds:
        runs.append(from_result(simulate(experiment.model_copy(update={"seed": seed}))))
        if on_run is not None:
            on_run()
    return Side(name, runs)


def _differences(base: Side, other: Side) -> dict[str, Difference]:
    found = {}
    for key in METRICS:
        one, two = base.mean(key), other.mean(key)
        if one is not None and two is not None:
            found[key] = Difference(key, one, two, *_interval(base, other, key))
    return found


def _interval(base: Side, other: Side, key: str) -> tuple[float, float] | tuple[None, None]:
    """Return the interval of a difference: over runs of equal seeds, else over twins among the requests."""
    if [run.seed for run in base.runs] == [run.seed for run in other.runs] and len(base.runs) > 1:
        pairs = zip(base.runs, other.runs, strict=True)
        return _student([float(two.values[key]) - float(one.values[key]) for one, two in pairs])
    one, two = base.runs[0], other.runs[0]
    if key not in _TWINS or not one.same_requests(two):
        return None, None
    gaps = 1e3 * (two.requests[_TWINS[key]] - one.requests[_TWINS[key]])
    gaps = gaps[np.isfinite(gaps)]
    if len(gaps) < 2 * _BATCHES:
        return None, None
    return _student([float(batch.mean()) for batch in np.array_split(gaps, _BATCHES)])


def _student(values: Sequence[float]) -> tuple[float, float]:
    from scipy.special import stdtrit

    count = len(values)
    mean = sum(values) / count
    error = math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1) / count)
    reach = float(stdtrit(count - 1, (1 + _CONFIDENCE) / 2)) * error
    return mean - reach, mean + reach


def _anatomy(side: Side) -> dict[str, Any]:
    found = side.anatomy
    return {
        "name": side.name,
        "iteration_ms": 1e3 * found.iteration_s,
        "operations_ms": {name: 1e3 * value for name, value in found.operations_s.items()},
        "queue_ms": 1e3 * found.queue_s,
        "prompt_ms": 1e3 * found.prompt_s,
        "waits": dict(found.waits),
        "running": found.running,
        "kv_tokens": found.kv_tokens,
    }
