"""Fronts: what a deployment gives its users against what it gives its owner.

``find_fronts(experiment, laboratory)`` answers for the ``search: {kind: pareto}`` of an experiment: one replica of
every deployment of the space, in a closed loop at every concurrency.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from sim.errors import InfeasibleError, UserError
from sim.experiment import Experiment
from sim.search.pareto import Pareto
from sim.simulate.prices import gpu_price
from sim.study.candidates import Candidate, candidates_of, caution_of
from sim.study.front import dominators
from sim.study.laboratory import Laboratory
from sim.study.load import lengths_of, load_of
from sim.study.spread import Spread
from sim.study.trial import Trial

__all__ = ["FRONTS", "ParetoAnswer", "ParetoPoint", "find_fronts"]

FRONTS: dict[str, tuple[str, str]] = {
    "speed": ("tok_s_user", "tok_s_gpu"),
    "price": ("usd_per_mtok", "ttft_ms"),
    "energy": ("energy_j_per_tok", "tok_s_user"),
}
"""Two coordinates each, by the name of the front."""
_SMALLER = ("usd_per_mtok", "ttft_ms", "energy_j_per_tok")
_UNITS = {
    "tok_s_user": "tok/s a user",
    "tok_s_gpu": "tok/s a GPU",
    "usd_per_mtok": "$/Mtok",
    "ttft_ms": "ms to the first token",
    "energy_j_per_tok": "J/token",
}

Task = tuple[Experiment, Laboratory, list[Candidate]]
Points = tuple[list["ParetoPoint"], dict[str, str]]


@dataclass(frozen=True, slots=True)
class ParetoPoint:
    """One deployment at one concurrency.

    Attributes
    ----------
    tok_s_user
        1 / median time per output token after the first.
    tok_s_gpu
        Output of all users by accelerator.
    usd_per_mtok, energy_j_per_tok
        By output token; None: not known.
    ttft_ms
        Median.
    dominated
        By front: why the point is not on it; a front that is missing has the point.
    """

    gpu: str
    label: str
    gpus: int
    concurrency: int
    tok_s_user: float
    tok_s_gpu: float
    usd_per_mtok: float | None
    ttft_ms: float
    energy_j_per_tok: float | None
    binding_limit: str
    binding_sentence: str
    dominated: Mapping[str, str]

    @property
    def name(self) -> str:
        """The point in a few words."""
        return f"{self.gpu} {self.label} at {self.concurrency}"

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data; *fronts* are those that it is on."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        known = [name for name, axes in FRONTS.items() if all(plain[axis] is not None for axis in axes)]
        return plain | {
            "dominated": dict(self.dominated),
            "fronts": [name for name in known if name not in self.dominated],
        }


@dataclass(frozen=True, slots=True)
class ParetoAnswer:
    """Every point, and the deployments that cannot be run, with their reasons."""

    name: str
    points: tuple[ParetoPoint, ...]
    unable: Mapping[str, str]
    caution: str
    runs: int

    def as_dict(self) -> dict[str, Any]:
        """Return the answer as plain data, in a fixed order."""
        return {
            "kind": "pareto",
            "name": self.name,
            "axes": {name: list(axes) for name, axes in FRONTS.items()},
            "points": [point.as_dict() for point in self.points],
            "unable": dict(self.unable),
            "caution": self.caution or None,
            "runs": self.runs,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each point."""
        plain = [point.as_dict() for point in self.points]
        return [
            {name: value for name, value in each.items() if name not in ("dominated", "fronts")}
            | {f"on_{front}_front": front in each["fronts"] for front in FRONTS}
            for each in plain
        ]


def find_fronts(experiment: Experiment, laboratory: Laboratory, spread: Spread = map) -> ParetoAnswer:
    """Run every deployment of the space at every concurrency and tell which no other one beats.

    Raises
    ------
    ConfigError
        A name is not known, or the workload brings its own arrivals.
    InfeasibleError
        No deployment can be run.
    """
    search = _search(experiment)
    candidates = candidates_of(experiment, search)
    tasks: list[Task] = [
        (experiment, laboratory, list(group)) for _, group in groupby(candidates, key=lambda candidate: candidate.gpu)
    ]
    groups = list(spread(points_of_group, tasks))
    points = [point for found, _ in groups for point in found]
    unable = {name: reason for _, reasons in groups for name, reason in reasons.items()}
    if not points:
        name, reason = next(iter(unable.items()))
        raise InfeasibleError(f"none of {len(unable)} deployments can be run", f"{name}: {reason}")
    return ParetoAnswer(experiment.name, tuple(_judged(points)), unable, caution_of(search), len(points))


def _search(experiment: Experiment) -> Pareto:
    return experiment.search if isinstance(experiment.search, Pareto) else Pareto()


def points_of_group(task: Task) -> Points:
    """Return the points of the deployments of one accelerator, and why others of them cannot be run."""
    experiment, laboratory, candidates = task
    points: list[ParetoPoint] = []
    unable: dict[str, str] = {}
    search = _search(experiment)
    load = load_of(experiment, "concurrency", None, 1.0, lengths_of(experiment))
    base = Trial(experiment, load, laboratory, search.confidence, 1, {"deployment.replicas": 1})
    for candidate in candidates:
        trial = base.with_settings(candidate.settings)
        try:
            points += [_point(trial, candidate, concurrency) for concurrency in search.concurrency]
        except InfeasibleError as problem:
            unable[f"{candidate.gpu} {candidate.label}"] = problem.needs
        except UserError as problem:
            unable[f"{candidate.gpu} {candidate.label}"] = problem.message
    return points, unable


def _point(trial: Trial, candidate: Candidate, concurrency: int) -> ParetoPoint:
    experiment = trial.experiment(concurrency)
    run = trial.laboratory.run(experiment)
    price = gpu_price(experiment)
    usd_per_s = None if price is None else price.usd_per_hour * candidate.gpus / 3600
    return ParetoPoint(
        gpu=candidate.gpu,
        label=candidate.label,
        gpus=candidate.gpus,
        concurrency=concurrency,
        tok_s_user=1e3 / run.figures["median_tpot_ms"],
        tok_s_gpu=run.output_tok_s / candidate.gpus,
        usd_per_mtok=None if usd_per_s is None else 1e6 * usd_per_s / run.output_tok_s,
        ttft_ms=run.figures["median_ttft_ms"],
        energy_j_per_tok=run.figures["energy_j_per_output_tok"],
        binding_limit=run.binding_limit,
        binding_sentence=run.binding_sentence,
        dominated={},
    )


def _judged(points: Sequence[ParetoPoint]) -> Iterable[ParetoPoint]:
    """Return *points* with what dominates them on each front."""
    reasons: list[dict[str, str]] = [{} for _ in points]
    for front, axes in FRONTS.items():
        known = [place for place, point in enumerate(points) if all(getattr(point, axis) is not None for axis in axes)]
        beaten = dominators([[_larger_is_better(points[place], axis) for axis in axes] for place in known])
        for place, by in zip(known, beaten, strict=True):
            if by is not None:
                reasons[place][front] = _reason(points[place], points[known[by]], axes)
    return [replace(point, dominated=reason) for point, reason in zip(points, reasons, strict=True)]


def _larger_is_better(point: ParetoPoint, axis: str) -> float:
    value: float = getattr(point, axis)
    return -value if axis in _SMALLER else value


def _reason(point: ParetoPoint, better: ParetoPoint, axes: tuple[str, str]) -> str:
    parts = (f"{getattr(better, axis):,.3g} instead of {getattr(point, axis):,.3g} {_UNITS[axis]}" for axis in axes)
    return f"{better.name}: {', '.join(parts)}"
