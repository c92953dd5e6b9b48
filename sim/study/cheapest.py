"""The cheapest deployment that keeps the SLO under a load.

``find_cheapest(experiment, laboratory)`` answers for the ``search: {kind: cheapest}`` of an experiment. Deployments of
one accelerator are compared with each other, by the number of accelerators; the best of each accelerator with the
others, by price. Every deployment that is not the best of its accelerator is `Dropped`, with the reason.

The accelerators are independent of each other, so *spread* may compute them in parallel, with the same answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from sim.errors import InfeasibleError, UserError
from sim.experiment import Experiment
from sim.search.cheapest import Cheapest
from sim.study.alternative import Alternative, Dropped, alternative_of, ranked
from sim.study.answer import CheapestAnswer
from sim.study.candidates import Candidate, candidates_of, caution_of
from sim.study.decision import Decision
from sim.study.doubt import NOMINAL, Doubt, deviates_of
from sim.study.fleet import Fleet
from sim.study.laboratory import Laboratory
from sim.study.load import lengths_of, load_of
from sim.study.spread import Spread
from sim.study.trial import Trial
from sim.units import format_seconds

__all__ = ["Group", "find_cheapest"]

_INTERVAL = 0.95  # one side of a 90 % interval

_UNSETTLED = {
    "overload": "the queue grows without end",
    "too short": "no run was long enough to reach a steady state; workload.num_requests is too small",
}

Task = tuple[Experiment, Laboratory, list[Candidate]]


@dataclass(frozen=True, slots=True)
class Group:
    """What became of the deployments of one accelerator: the best one, if any, the others, and the runs it took."""

    best: Alternative | None
    dropped: tuple[Dropped, ...]
    runs: int


def find_cheapest(experiment: Experiment, laboratory: Laboratory, spread: Spread = map) -> CheapestAnswer:
    """Find the cheapest deployment for the load of *experiment*.

    Raises
    ------
    ConfigError
        There is no SLO, the load is none that could be more or less, or a name is not known.
    InfeasibleError
        No deployment keeps the SLO within the limits.
    """
    search = experiment.search if isinstance(experiment.search, Cheapest) else Cheapest()
    trial = _trial(experiment, search, laboratory)
    _ = trial.slo
    candidates = candidates_of(experiment, search)
    tasks: list[Task] = [
        (experiment, laboratory, list(group)) for _, group in groupby(candidates, key=lambda candidate: candidate.gpu)
    ]
    groups = list(spread(best_of_group, tasks))
    dropped = tuple(each for group in groups for each in group.dropped)
    alternatives = ranked([group.best for group in groups if group.best is not None], search)
    if not alternatives:
        _require_possible(trial, candidates, dropped)
        raise _infeasible(search, dropped)
    return CheapestAnswer(
        name=experiment.name,
        model=experiment.model,
        load_unit=trial.load.unit,
        load_words=trial.load.words,
        load=trial.load.amount,
        peak=trial.load.peak,
        slo=trial.slo,
        confidence=search.confidence,
        alternatives=alternatives,
        unable={group.dropped[0].gpu: _closest(group.dropped).reason for group in groups if group.best is None},
        dropped=dropped,
        caution=caution_of(search),
        runs=sum(group.runs for group in groups),
    )


def _trial(experiment: Experiment, search: Cheapest, laboratory: Laboratory) -> Trial:
    load = load_of(experiment, None, search.users, search.peak_factor, lengths_of(experiment))
    return Trial(experiment, load, laboratory, search.confidence, search.replications, {})


def best_of_group(task: Task) -> Group:
    """Return the best of the deployments of one accelerator."""
    experiment, laboratory, candidates = task
    search = experiment.search if isinstance(experiment.search, Cheapest) else Cheapest()
    before = laboratory.runs
    found = _Comparison(search, _trial(experiment, search, laboratory), candidates)
    return Group(found.best(), tuple(found.dropped), laboratory.runs - before)


@dataclass(frozen=True, slots=True)
class _Sized:
    """A fleet and its number of replicas: by the model, and with the confidence asked for."""

    fleet: Fleet
    nominal: int
    replicas: int

    @property
    def gpus(self) -> int:
        return self.replicas * self.fleet.candidate.gpus


class _Comparison:
    """Compares the deployments of one accelerator by how many of it they take."""

    def __init__(self, search: Cheapest, trial: Trial, candidates: Sequence[Candidate]) -> None:
        lengths = lengths_of(trial.base)
        self._search, self._trial = search, trial
        self._fleets = [Fleet(candidate, trial, lengths) for candidate in candidates]
        self._deviates = deviates_of(search.confidence)
        self.dropped: list[Dropped] = []

    def best(self) -> Alternative | None:
        """Return the deployment with the fewest accelerators; the others are then in `dropped`."""
        possible = [fleet for fleet in self._fleets if self._is_possible(fleet)]
        possible.sort(key=lambda fleet: max(fleet.likely_replicas, fleet.least_replicas) * fleet.candidate.gpus)
        best: _Sized | None = None
        for fleet in possible:
            sized = self._sized(fleet, best)
            if sized is not None:
                if best is not None:
                    self._drop(best.fleet, "dominated", f"{best.gpus} accelerators; {_name(sized)} keep the SLO")
                best = sized
        return None if best is None else self._alternative(best)

    def _is_possible(self, fleet: Fleet) -> bool:
        """Tell whether a fleet passes what can be said without simulation."""
        try:
            setup = fleet.setup
        except InfeasibleError as problem:
            return self._drop(fleet, "memory", problem.needs)
        except UserError as problem:
            return self._drop(fleet, "impossible", str(problem))
        del setup
        for clause in self._trial.slo.clauses:
            least_s = fleet.bounds.least_s(clause)
            if least_s > clause.bound_s:
                least = f"{clause.name} is {format_seconds(least_s)} or more on an idle replica"
                return self._drop(fleet, "bound", f"{least}; at most {format_seconds(clause.bound_s)} asked for")
        if fleet.least_replicas > self._search.max_replicas:
            return self._drop(fleet, "bound", f"the load takes {fleet.least_replicas} replicas or more")
        return True

    def _drop(self, fleet: Fleet, stage: str, reason: str, margin: float = -math.inf) -> bool:
        candidate = fleet.candidate
        self.dropped.append(Dropped(candidate.gpu, candidate.label, candidate.settings, stage, reason, margin))
        return False

    def _sized(self, fleet: Fleet, best: _Sized | None) -> _Sized | None:
        """Return the fewest replicas of *fleet*, if they are fewer accelerators than the *best* so far has."""
        low = max(self._search.min_replicas, fleet.least_replicas)
        most = self._search.max_replicas
        if best is not None:
            most = min(most, (best.gpus - 1) // fleet.candidate.gpus)
        if low > most:
            assert best is not None
            takes = f"takes {low * fleet.candidate.gpus} accelerators or more"
            self._drop(fleet, "dominated", f"{takes}; {_name(best)} keep the SLO")
            return None
        nominal = fleet.fewest(NOMINAL, most if best else fleet.likely_replicas, low, most)
        if nominal is None:
            self._drop_missed(fleet, most, NOMINAL, best)
            return None
        doubt = self._doubt(fleet, nominal)
        replicas = fleet.fewest(doubt, most if best else nominal + 1, nominal, most)
        if replicas is None:
            self._drop_missed(fleet, most, doubt, best)
            return None
        return _Sized(fleet, nominal, replicas)

    def _doubt(self, fleet: Fleet, nominal: int, deviates: float | None = None) -> Doubt:
        """Return the machine that must keep the SLO, by the errors of the model where it just keeps it."""
        decision = fleet.test(nominal)
        quantile = self._deviates if deviates is None else deviates
        return Doubt.of(decision.runs[0].factors, quantile, decision.noise or 0.0)

    def _drop_missed(self, fleet: Fleet, most: int, doubt: Doubt, best: _Sized | None) -> None:
        decision = fleet.test(most, doubt)
        sure = f" with {self._search.confidence:.0%} confidence" if doubt.deviates else ""
        reason = f"{most} x {fleet.candidate.label} miss {_missed(decision)}{sure}"
        if best is not None:
            reason += f"; {_name(best)} keep the SLO"
        self._drop(fleet, "dominated" if best is not None else "missed", reason, decision.margin)

    def _alternative(self, best: _Sized) -> Alternative:
        fleet, search = best.fleet, self._search
        quantile = deviates_of(_INTERVAL)
        first = max(search.min_replicas, fleet.least_replicas)
        better = self._doubt(fleet, best.nominal, -quantile)
        low = fleet.fewest(better, best.nominal, min(first, best.nominal), best.nominal)
        high = fleet.fewest(
            self._doubt(fleet, best.nominal, quantile), best.replicas, best.replicas, search.max_replicas
        )
        decision = fleet.test(best.replicas, self._doubt(fleet, best.nominal))
        return alternative_of(
            fleet, search, decision, nominal=best.nominal, replicas=best.replicas, low=low or best.nominal, high=high
        )


def _name(sized: _Sized) -> str:
    return f"{sized.gpus} as {sized.replicas} x {sized.fleet.candidate.label}"


def _missed(decision: Decision) -> str:
    """Return what a decision missed, and by how much."""
    if decision.objective in _UNSETTLED:
        return f"the SLO: {_UNSETTLED[decision.objective]}"
    if math.isinf(decision.margin):
        return f"{decision.objective}: too many requests without an answer"
    return f"{decision.objective} by {math.exp(-decision.margin) - 1:.0%}"


def _require_possible(trial: Trial, candidates: Sequence[Candidate], dropped: Sequence[Dropped]) -> None:
    """Raise the error of the first deployment if none can be run as written: that is a mistake, no answer."""
    if all(each.stage == "impossible" for each in dropped):
        _ = Fleet(candidates[0], trial, lengths_of(trial.base)).setup


def _infeasible(search: Cheapest, dropped: Sequence[Dropped]) -> InfeasibleError:
    """Return what came closest."""
    closest = _closest(dropped)
    needs = f"no deployment of {len(dropped)} keeps the SLO with at most {search.max_replicas} replicas"
    has = f"closest is {closest.gpu} {closest.label}: {closest.reason}"
    return InfeasibleError(needs, has, _advice(closest))


def _closest(dropped: Sequence[Dropped]) -> Dropped:
    return max(dropped, key=lambda each: (each.margin, each.stage == "bound", each.stage == "memory"))


def _advice(closest: Dropped) -> Iterator[str]:
    if closest.stage == "missed":
        yield "search.max_replicas larger, or a looser objective"
    elif closest.stage == "bound":
        yield "a looser objective, or a faster accelerator in search.gpus"
    else:
        yield "larger tp or pp, or accelerators with more memory in search.gpus"
