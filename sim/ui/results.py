"""Results of runs, kept by all that they depend on: what somebody has asked before is there at once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

from sim.experiment import Experiment
from sim.simulate import Result, simulate
from sim.study.key import Keys
from sim.ui.jobs import Job, OnProgress, start

__all__ = ["Kept", "ask_run", "runs"]

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


def ask_run(experiment: Experiment) -> Job[Result]:
    """Return the run of *experiment*, which begins now unless its result is known.

    Raise a `UserError` if a profile or file that it needs is missing.
    """
    key = Keys().of(experiment)
    return runs.ask(key, lambda on_progress: simulate(experiment, on_progress))
