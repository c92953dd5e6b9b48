"""The highest load that keeps the SLO.

``find_capacity(experiment, laboratory)`` answers for the ``search: {kind: capacity}`` of an experiment, or for its
defaults where there is none. It needs an SLO and a load that can be more or less: a rate, or users of a closed loop.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sim.errors import InfeasibleError
from sim.experiment import Experiment
from sim.search.capacity import Capacity
from sim.slo import SHARES, SLO
from sim.study.bisection import last_true
from sim.study.decision import Decision
from sim.study.doubt import NOMINAL, Doubt, deviates_of
from sim.study.laboratory import Laboratory
from sim.study.load import Unit, lengths_of, load_of
from sim.study.measure import Measured, asked
from sim.study.trial import Trial
from sim.units import format_seconds

__all__ = ["CapacityAnswer", "Step", "find_capacity", "steps_of"]

_INTERVAL = 0.95  # one side of a 90 % interval
_STRIDE = 8  # steps; loads are far apart at first


@dataclass(frozen=True, slots=True)
class Step:
    """A load that was tested: by what it met or missed the SLO.

    *slower* is the machine that it was tested on, over the model; *margin* the logarithm of bound over value of the
    *objective*, which is the closest to its bound.
    """

    load: float
    slower: float
    met: bool
    margin: float
    objective: str
    sure: bool
    replications: int
    values_s: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class CapacityAnswer:
    """The highest load within the SLO.

    Attributes
    ----------
    unit
        ``rate`` [requests/s], ``concurrency`` [requests in flight], ``users`` [people], ``speed`` [of the trace].
    load_words
        The unit for people.
    capacity
        By the model itself.
    interval
        90 %: errors of the model and noise of the replications.
    at_confidence
        What is kept with the *confidence* asked for.
    sure
        The tests on both sides of `capacity` were beyond the noise.
    objective
        Which objective the next load misses.
    run
        The run at `capacity`.
    steps
        All loads tested, in their order.
    """

    name: str
    slo: SLO
    unit: Unit
    load_words: str
    capacity: float
    interval: tuple[float, float]
    at_confidence: float
    confidence: float
    sure: bool
    objective: str
    run: Measured
    steps: tuple[Step, ...]
    runs: int

    def as_dict(self) -> dict[str, Any]:
        """Return the answer as plain data, in a fixed order."""
        return {
            "kind": "capacity",
            "name": self.name,
            **asked(self.slo),
            "unit": self.unit,
            "load_words": self.load_words,
            "capacity": self.capacity,
            "interval": list(self.interval),
            "confidence": self.confidence,
            "at_confidence": self.at_confidence,
            "decided": self.sure,
            "binding_objective": self.objective,
            "num_gpus": self.run.num_gpus,
            **self.run.as_dict(self.slo),
            "steps": [asdict(step) for step in self.steps],
            "runs": self.runs,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each load that was tested."""
        return [
            {name: value for name, value in asdict(step).items() if name != "values_s"}
            | {f"{name}_ms": 1e3 * value for name, value in step.values_s.items()}
            for step in self.steps
        ]


def steps_of(search: Capacity, *, whole: bool) -> tuple[float, ...]:
    """Return the loads that a search may answer with, ascending: each a step of the tolerance above the one before."""

    def loads() -> Iterator[float]:
        load = max(1.0, math.ceil(search.low)) if whole else search.low
        while load <= search.high:
            yield load
            load *= 1 + search.tolerance
            if whole:
                load = max(math.floor(load), math.floor(load / (1 + search.tolerance) + 0.5) + 1.0)

    return tuple(loads())


def find_capacity(experiment: Experiment, laboratory: Laboratory) -> CapacityAnswer:
    """Find the highest load that *experiment* keeps its SLO at.

    Raises
    ------
    ConfigError
        There is no SLO, or no load that could be more or less.
    InfeasibleError
        The model does not fit, or the SLO is missed at the smallest load.
    """
    search = experiment.search if isinstance(experiment.search, Capacity) else Capacity()
    load = load_of(experiment, search.of, search.users, 1.0, lengths_of(experiment))
    trial = Trial(experiment, load, laboratory, search.confidence, search.replications, {})
    return _Search(trial, steps_of(search, whole=load.whole)).answer()


class _Search:
    """A bisection, and what it has tested."""

    def __init__(self, trial: Trial, loads: tuple[float, ...]) -> None:
        self._trial, self._loads = trial, loads
        self._tested: dict[tuple[float, float], Decision] = {}  # by the quantile of the errors and the load
        self._steps: list[Step] = []

    def answer(self) -> CapacityAnswer:
        trial, amount = self._trial, self._trial.load.amount
        capacity = self._highest(lambda load: NOMINAL, amount)
        if capacity is None:
            raise self._infeasible()
        met = self._test(NOMINAL, capacity)
        missed = self._above(capacity)
        deviates = deviates_of(_INTERVAL)
        low, high, safe = (
            self._highest(self._doubt(quantile, capacity), capacity) or 0.0
            for quantile in (deviates, -deviates, deviates_of(trial.confidence))
        )
        return CapacityAnswer(
            name=trial.base.name,
            slo=trial.slo,
            unit=trial.load.unit,
            load_words=trial.load.words,
            capacity=capacity,
            interval=(min(low, capacity), max(high, capacity)),
            at_confidence=min(safe, capacity),
            confidence=trial.confidence,
            sure=met.sure and (missed is None or missed.sure),
            objective="" if missed is None else missed.objective,
            run=met.typical,
            steps=tuple(self._steps),
            runs=trial.laboratory.runs,
        )

    def _highest(self, doubt: Callable[[float], Doubt], near: float) -> float | None:
        """Return the highest load kept on the machine of its *doubt*, looked for *near* one; None: not the lowest."""

        def met(place: int) -> bool:
            load = self._loads[place]
            return self._test(doubt(load), load).met

        start = bisect_left(self._loads, near / doubt(near).slower)
        place = last_true(met, start, 0, len(self._loads) - 1, _STRIDE)
        return None if place is None else self._loads[place]

    def _doubt(self, deviates: float, capacity: float) -> Callable[[float], Doubt]:
        """Return the machine to test a load on: by the errors in the regime of that load, which at most is *capacity*.

        A saturated machine is predicted far worse than a busy one: its errors say nothing about half its load.
        """
        noise = self._test(NOMINAL, capacity).noise or 0.0
        return lambda load: Doubt.of(self._test(NOMINAL, min(load, capacity)).typical.factors, deviates, noise)

    def _test(self, doubt: Doubt, load: float) -> Decision:
        key = doubt.deviates, load
        if key not in self._tested:
            self._tested[key] = decision = self._trial.decide(load, doubt)
            self._steps.append(_step(load, doubt, decision))
        return self._tested[key]

    def _above(self, load: float) -> Decision | None:
        place = self._loads.index(load) + 1
        return self._test(NOMINAL, self._loads[place]) if place < len(self._loads) else None

    def _infeasible(self) -> InfeasibleError:
        """Return what the smallest load lacks."""
        smallest = self._loads[0]
        decision = self._test(NOMINAL, smallest)
        if decision.objective == "too short":
            needs = f"a run that is long enough to tell at a load of {smallest:g}"
            return InfeasibleError(needs, "its workload has too few requests", ["workload.num_requests larger"])
        clause = next((each for each in self._trial.slo.clauses if each.name == decision.objective), None)
        if clause is None:
            needs = f"{smallest:g} is the smallest load considered"
            return InfeasibleError(needs, "it overloads the deployment already")
        value_s = decision.runs[0].values_s[clause.name]
        needs = f"{clause.name} of at most {format_seconds(clause.bound_s)}"
        has = f"{format_seconds(value_s)} at a load of {smallest:g} already"
        return InfeasibleError(needs, has, [f"{clause.name}: {format_seconds(1.02 * value_s)}"])


def _step(load: float, doubt: Doubt, decision: Decision) -> Step:
    return Step(
        load,
        doubt.slower,
        decision.met,
        decision.margin,
        decision.objective,
        decision.sure,
        len(decision.runs),
        {name: value * doubt.slower for name, value in decision.typical.values_s.items() if name not in SHARES},
    )
