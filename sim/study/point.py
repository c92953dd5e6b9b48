"""A point: one run of a sweep."""

from __future__ import annotations

import dataclasses
import itertools
import json
from typing import Any

from sim.experiment import Experiment, experiment_of
from sim.sweep import Settings

__all__ = ["Point", "points_of"]

_MOST_POINTS = 100_000


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    """Number *index* of a sweep, from 0: *settings* by dotted path, and the number of its replication, from 0."""

    index: int
    settings: Settings
    replication: int

    def experiment(self, base: Experiment) -> Experiment:
        """Return *base* with the settings of this point; raise `ConfigError` where they cannot be used.

        Points that differ only in their settings have the same seed, so that they share all random draws.
        """
        document = base.document_for(self.settings)
        for path, value in self.settings.items():
            document = document.replace(path, value, f"{base.document.file}: point {self.index}")
        experiment = experiment_of(document)
        return experiment.model_copy(update={"seed": experiment.seed + self.replication})

    def columns(self) -> dict[str, Any]:
        """Return the columns of this point's row that tell which it is; lists and mappings as JSON."""
        values = {path: _cell(value) for path, value in self.settings.items()}
        return {"point": self.index, **values, "replication": self.replication}


def points_of(base: Experiment) -> list[Point]:
    """Return the runs of the sweep that *base* asks for, the replications of a point one after the other.

    Raises
    ------
    ConfigError
        There is no sweep, or an absurdly large one.
    """
    if base.sweep is None:
        raise base.error("sweep", "missing: write such as sweep: {deployment.parallelism.tp: [1, 2, 4]}")
    replications = range(base.sweep.replications)
    runs = ((settings, replication) for settings in base.sweep.settings() for replication in replications)
    points = [Point(index, *run) for index, run in enumerate(itertools.islice(runs, _MOST_POINTS + 1))]
    if len(points) > _MOST_POINTS:
        raise base.error("sweep", f"has more than {_MOST_POINTS:,} runs; a sampled design covers many axes with few")
    return points


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict) else value
