"""Results of runs, kept by all that they depend on: what somebody has asked before is there at once."""

from __future__ import annotations

import itertools
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from sim.experiment import Experiment
from sim.simulate import Result, simulate
from sim.study.cheapest import find_cheapest
from sim.study.compare import Comparison, compare, play_seeds
from sim.study.dossier import dossier_of
from sim.study.key import Keys
from sim.study.laboratory import Laboratory
from sim.study.money import Money, money_of
from sim.study.search import Answer, answer_of
from sim.ui.jobs import Job, OnProgress, start

__all__ = [
    "Kept",
    "ask_comparison",
    "ask_money",
    "ask_report",
    "ask_run",
    "ask_search",
    "comparisons",
    "monies",
    "reports",
    "runs",
    "searches",
]

T = TypeVar("T")

_MOST_KEPT = 64


class Kept:
    """The last results, by key; the oldest ones go. Threads may share it."""

    def __init__(self, most: int = _MOST_KEPT) -> None:
        self._most, self._lock = most, threading.Lock()
        self._jobs: OrderedDict[Any, Job[Any]] = OrderedDict()

    def ask(self, key: Any, work: Callable[[OnProgress], T]) -> Job[T]:
        """Return the job with that *key*, whatever became of it, or start it if there is none."""
        with self._lock:
            job = self._jobs.get(key) or start(work)
            self._jobs[key] = job
            self._jobs.move_to_end(key)
            while len(self._jobs) > self._most:
                self._jobs.popitem(last=False)[1].cancel()
            return job

    def forget(self, job: Job[Any]) -> None:
        """Let *job* begin anew when it is asked for again."""
        with self._lock:
            for key in [key for key, kept in self._jobs.items() if kept is job]:
                del self._jobs[key]


runs = Kept()
monies = Kept()


def ask_money(experiment: Experiment) -> Job[Money]:
    """Return what *experiment* costs, which is computed now unless it is known; raise as `ask_run` does."""
    key = Keys().of(experiment)

    def work(on_progress: OnProgress) -> Money:
        return money_of(experiment, simulate(experiment, on_progress))

    return monies.ask(key, work)


reports = Kept(8)


def ask_report(experiment: Experiment) -> Job[dict[str, Any]]:
    """Return all that the report of *experiment* shows, as `dossier_of` gathers it; raise as `ask_run` does."""

    def work(on_progress: OnProgress) -> dict[str, Any]:
        laboratory = Laboratory(on_run=lambda runs: on_progress(runs, 0))
        return dossier_of(experiment, find_cheapest(experiment, laboratory), laboratory)

    return reports.ask(_search_key(experiment), work)


comparisons = Kept()


def ask_comparison(sides: Mapping[str, Experiment], replications: int) -> Job[Comparison]:
    """Return the comparison of *sides* by their names, the first with each other; raise as `ask_run` does."""
    keys = Keys()
    key = json.dumps([[name, keys.of(experiment)] for name, experiment in sides.items()] + [replications])

    def work(on_progress: OnProgress) -> Comparison:
        rounds = itertools.count(1)

        def ran() -> None:
            on_progress(next(rounds), len(sides) * replications)

        played = [
            play_seeds(name, experiment, range(experiment.seed, experiment.seed + replications), ran)
            for name, experiment in sides.items()
        ]
        return compare(played)

    return comparisons.ask(key, work)


searches = Kept()


def ask_search(experiment: Experiment) -> Job[Answer]:
    """Return the search of *experiment*, which begins now unless its answer is known; raise as `ask_run` does.

    Its progress is the number of runs so far, of which nobody knows how many there will be.
    """

    def work(on_progress: OnProgress) -> Answer:
        return answer_of(experiment, Laboratory(on_run=lambda runs: on_progress(runs, 0)))

    return searches.ask(_search_key(experiment), work)


def _search_key(experiment: Experiment) -> str:
    asked = "" if experiment.search is None else experiment.search.model_dump_json()
    return f"{Keys().of(experiment)} {asked}"


def ask_run(experiment: Experiment) -> Job[Result]:
    """Return the run of *experiment*, which begins now unless its result is known.

    Raise a `UserError` if a profile or file that it needs is missing.
    """
    key = Keys().of(experiment)
    return runs.ask(key, lambda on_progress: simulate(experiment, on_progress))
