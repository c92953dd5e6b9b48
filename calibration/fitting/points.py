"""Points of a fit: what was measured, and what constants predict for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from calibration.cases.not_modelled import NotModelledError
from calibration.cases.serving import ServingCase
from calibration.experiment.of_case import experiment_of_case, prepared_to_fit
from sim.errors import SimError
from sim.experiment import Experiment
from sim.profiles.calibrated_engine import EngineConstants
from sim.simulate import ReadyPool, Setup, play, prepare
from sim.workload.arrivals.base import RecordedArrivals

__all__ = ["METRICS", "Floats", "Latencies", "Measured", "Point", "log_errors", "points_of", "predict", "scaled_errors"]

Floats = NDArray[np.float64]
Latencies = dict[str, float]
"""Metric to value [ms]."""
METRICS = {
    "tpot_mean_ms": 0.05,
    "itl_mean_ms": 0.05,
    "ttft_mean_ms": 0.15,
    "ttft_p50_ms": 0.15,
    "e2e_mean_ms": 0.05,
}
"""Latencies that are fitted, and the error of each that is taken as noise of the measurement and of the model."""
_INSTEAD = {"itl_mean_ms": "tpot_mean_ms", "ttft_p50_ms": "ttft_mean_ms", "e2e_mean_ms": "tpot_mean_ms"}
"""Latencies that tell nothing new beside another one."""
_OPEN_LOOP_REQUESTS = 600
_WITHOUT_CHANCE = 0.4
"""What is taken to be left of the noise where neither arrivals nor lengths are drawn: of the time per token, 2 %."""


class Measured(Protocol):
    """A point of a fit: what was measured, and what constants predict for it."""

    @property
    def case(self) -> ServingCase:
        """The run that it is, or is of."""

    @property
    def setup(self) -> Setup:
        """The deployment with the engine profile's own constants."""

    @property
    def measured(self) -> dict[str, float]:
        """The latencies that are fitted [ms]."""

    def noise(self, metric: str) -> float:
        """Return the error of a latency that is taken as noise of the measurement and of the model."""

    def predicted(self, constants: EngineConstants) -> Latencies:
        """Return what *constants* give [ms]."""


@dataclass(frozen=True, slots=True)
class Point:
    """One load to be simulated with different constants, and what was measured under it.

    Attributes
    ----------
    case
        A run under this load, with the means of all *runs* that were.
    """

    case: ServingCase
    experiment: Experiment
    setup: Setup
    assumed: Sequence[str] = ()
    runs: int = 1

    @property
    def measured(self) -> dict[str, float]:
        """The latencies that are fitted [ms]."""
        found = {metric: value for metric, value in self.case.measured.items() if metric in METRICS}
        return {metric: value for metric, value in found.items() if _INSTEAD.get(metric) not in found}

    def noise(self, metric: str) -> float:
        """Return the error of a latency that is taken as noise: less where the requests of the run are replayed."""
        replayed = isinstance(self.experiment.workload.arrivals, RecordedArrivals)
        return METRICS[metric] * (_WITHOUT_CHANCE if replayed else 1.0)

    def predicted(self, constants: EngineConstants) -> Latencies:
        """Return what the simulation gives with *constants*."""
        setup = self.setup.with_constants(self.experiment, constants)
        requests = play(self.experiment, [ReadyPool("", self.experiment, setup)]).requests
        done = requests.completed
        if not done.any():
            return {}
        ttft_s, tpot_s = requests.ttft_s[done], requests.tpot_s[done]
        found = {
            "ttft_mean_ms": 1e3 * float(ttft_s.mean()),
            "ttft_p50_ms": 1e3 * float(np.median(ttft_s)),
            "e2e_mean_ms": 1e3 * float(requests.e2e_s[done].mean()),
        }
        if np.isnan(tpot_s).all():  # answers of one token
            return found
        return found | dict.fromkeys(("tpot_mean_ms", "itl_mean_ms"), 1e3 * float(np.nanmean(tpot_s)))


def points_of(cases: Iterable[ServingCase]) -> tuple[list[Point], dict[str, str]]:
    """Return a point for each load that can be simulated, and the reason for each other case by name.

    Runs of one load are one point: that none of them is kept back while another is fitted.
    """
    asked: dict[Any, list[ServingCase]] = {}
    for case in {str(case.row): case for case in cases}.values():
        asked.setdefault(case.question, []).append(case)
    loads: dict[str, list[ServingCase]] = {}
    refused: dict[str, str] = {}
    points = []
    for alike in asked.values():
        try:
            loads.setdefault(_load_of(alike[0]), []).extend(alike)
        except (NotModelledError, SimError) as problem:
            refused |= dict.fromkeys((case.name for case in alike), str(problem))
    for alike in loads.values():
        try:
            points.append(_point(_mean_of(alike), len(alike)))
        except (NotModelledError, SimError) as problem:
            refused |= dict.fromkeys((case.name for case in alike), str(problem))
    return points, refused


def _load_of(case: ServingCase) -> str:
    """Return what is simulated of *case*, the same for runs that repeat each other."""
    return experiment_of_case(case, _OPEN_LOOP_REQUESTS).experiment.model_dump_json(exclude={"name"})


def _mean_of(alike: Sequence[ServingCase]) -> ServingCase:
    """Return the first of *alike* with the geometric means of what was measured, and the doubts about all."""
    measured = [case.measured for case in alike]
    names = dict.fromkeys(name for found in measured for name in found)
    means = {name: geometric_mean([found[name] for found in measured if name in found]) for name in names}
    cells = {name: str(mean) for name, mean in means.items()} if len(alike) > 1 else {}
    doubts = tuple(doubt for case in alike for doubt in case.doubts)
    return replace(alike[0], row={**alike[0].row, **cells}, doubts=doubts)


def _point(case: ServingCase, runs: int) -> Point:
    prepared, _ = prepared_to_fit(case, _OPEN_LOOP_REQUESTS)
    if prepared.experiment.pools:
        raise NotModelledError("constants are fitted to runs on equal replicas only")
    setup = prepare(_uncalibrated(prepared.experiment))
    return Point(case, prepared.experiment, setup, tuple(prepared.assumed), runs)


def _uncalibrated(experiment: Experiment) -> Experiment:
    """Return *experiment* on the engine profile's own constants."""
    engine = experiment.engine.model_copy(update={"calibration": "none"})
    copied = experiment.model_copy(update={"engine": engine})
    copied._document = experiment.document
    return copied


def predict(tasks: Sequence[tuple[Measured, EngineConstants]]) -> list[Latencies]:
    """Return what each point is predicted: runs are simulated on all cores, steps asked for here."""
    from joblib import Parallel, delayed

    runs = [place for place, (point, _) in enumerate(tasks) if isinstance(point, Point)]
    simulated = Parallel(n_jobs=-1, batch_size=4)(delayed(Point.predicted)(*tasks[place]) for place in runs)
    found: dict[int, Latencies] = dict(zip(runs, simulated, strict=True))
    return [
        found[place] if place in found else point.predicted(constants)
        for place, (point, constants) in enumerate(tasks)
    ]


def scaled_errors(point: Measured, predicted: Latencies) -> Floats:
    """Return ``ln(predicted / measured)`` of the latencies of *point*, in units of their noise."""
    return np.array(
        [np.log(predicted.get(metric, value) / value) / point.noise(metric) for metric, value in point.measured.items()]
    )


def log_errors(
    points: Sequence[Measured], constants: EngineConstants
) -> Iterator[tuple[Measured, dict[str, float]]]:
    """Yield each point with ``ln(predicted / measured)`` of its latencies."""
    for point, predicted in zip(points, predict([(point, constants) for point in points]), strict=True):
        names, scaled = point.measured, scaled_errors(point, predicted)
        yield point, {name: float(value * point.noise(name)) for name, value in zip(names, scaled, strict=True)}
