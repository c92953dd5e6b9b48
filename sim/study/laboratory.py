"""Runs that searches ask for: each is made once, remembered on disk, and counted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sim.experiment import Experiment, experiment_of
from sim.study.cache import Cache
from sim.study.key import Keys
from sim.study.measure import Measured, measured
from sim.sweep import Settings

__all__ = ["Laboratory", "OnRun", "altered"]

OnRun = Callable[[int], None]
"""Called with the number of runs so far, before each of them; what it raises ends the search, which cancels it."""

_LONGER = 16  # times the requests that were asked for, until a run is long enough to be judged


def altered(base: Experiment, settings: Settings) -> Experiment:
    """Return *base* with *settings* by dotted path, and without what a single run does not read.

    Raises
    ------
    ConfigError
        The settings cannot be used.
    """
    document = base.document_for(settings)
    for path, value in settings.items():
        document = document.replace(path, value, f"{base.document.file}: {path}")
    for section in ("sweep", "search"):
        document = document.replace(section, None, base.document.file)
    return experiment_of(document)


@dataclass(slots=True)
class Laboratory:
    """Makes the runs of searches.

    Attributes
    ----------
    cache
        Of runs by others, earlier or beside this one.
    runs
        How many were asked for, whether or not they were known.
    """

    cache: Cache = field(default_factory=lambda: Cache(None))
    on_run: OnRun = lambda runs: None
    runs: int = 0
    _keys: Keys = field(default_factory=Keys)
    _known: dict[str, Measured] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process it begins anew, with the same cache."""
        return Laboratory, (self.cache,)

    def run(self, experiment: Experiment) -> Measured:
        """Return what *experiment* comes to, with more requests where its own are too few to judge by.

        Raises
        ------
        UserError, InfeasibleError
            As `simulate` does.
        """
        found = self._once(experiment)
        requests, longer = experiment.workload.num_requests, 2
        while not (found.settled or found.overloaded) and requests is not None and longer <= _LONGER:
            found = self._once(with_requests(experiment, longer * requests))
            longer *= 2
        return found

    def _once(self, experiment: Experiment) -> Measured:
        key = hashlib.sha256(f"measured {self._keys.of(experiment)}".encode()).hexdigest()
        if key in self._known:
            return self._known[key]
        self.on_run(self.runs)
        self.runs += 1
        outcome = self.cache.get(key)
        if outcome is not None:
            found = Measured.from_json(outcome["measured"])
        else:
            found = measured(experiment)
            self.cache.put(key, {"status": "ok", "measured": found.to_json()})
        self._known[key] = found
        return found


def with_requests(experiment: Experiment, requests: int) -> Experiment:
    """Return *experiment* with that many *requests*."""
    workload = experiment.workload.model_copy(update={"num_requests": requests})
    return experiment.model_copy(update={"workload": workload})
