"""What figures of a run depend on, and where the best of some rivals changes.

``find_sensitivity(experiment, laboratory)`` answers for the ``search: {kind: sensitivity}`` of an experiment.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.experiment import Experiment
from sim.ranges import Range
from sim.search.sensitivity import Sensitivity
from sim.study.figures import Figures
from sim.study.laboratory import Laboratory
from sim.study.sobol import SobolIndex, sobol_indices
from sim.sweep import Settings

__all__ = ["Effect", "SensitivityAnswer", "Switch", "find_sensitivity"]

_CLOSE = 1 / 128
"""Share of a range within which a change is located."""
_NOBODY = "none"


@dataclass(frozen=True, slots=True)
class Effect:
    """An *output* with one *path* at the ends of its range and all else as in the experiment.

    *swing* is the difference of the two over the value of the experiment as it is, *base*.
    """

    path: str
    output: str
    low: float
    high: float
    base: float
    at_low: float
    at_high: float
    swing: float


@dataclass(frozen=True, slots=True)
class Switch:
    """Along *path*, the best rival changes at *value*, from *before* to *after*; *reason* says why."""

    path: str
    value: float
    before: str
    after: str
    reason: str


@dataclass(frozen=True, slots=True)
class SensitivityAnswer:
    """Effects one at a time by falling swing, Sobol indices, and changes of the decision.

    *best* is the best rival of the experiment as it is: the cheapest by output token within the SLO.
    """

    name: str
    effects: tuple[Effect, ...]
    indices: tuple[SobolIndex, ...]
    best: str
    switches: tuple[Switch, ...]
    runs: int

    def as_dict(self) -> dict[str, Any]:
        """Return the answer as plain data, in a fixed order."""
        return {"kind": "sensitivity", **asdict(self)}

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each effect."""
        return [asdict(effect) for effect in self.effects]


def find_sensitivity(experiment: Experiment, laboratory: Laboratory) -> SensitivityAnswer:
    """Run the experiment over the ranges that its search names.

    Raises
    ------
    ConfigError
        A path or an output is not known.
    InfeasibleError
        A run does not fit.
    """
    search = experiment.search
    assert isinstance(search, Sensitivity), "the default search asks for something else"
    figures = Figures(experiment, laboratory)
    contest = _Contest(figures, search.rivals)
    return SensitivityAnswer(
        name=experiment.name,
        effects=tuple(_effects(figures, search)),
        indices=tuple(_indices(figures, search)) if search.sobol_points else (),
        best=contest.best({}) if search.rivals else "",
        switches=tuple(contest.switches(search.paths, search.steps)) if search.rivals else (),
        runs=laboratory.runs,
    )


def _effects(figures: Figures, search: Sensitivity) -> list[Effect]:
    base = figures.of({}, search.outputs)
    effects = []
    for path, over in search.paths.items():
        low, high = (figures.of({path: over.at(share)}, search.outputs) for share in (0.0, 1.0))
        for output in search.outputs:
            swing = (high[output] - low[output]) / base[output] if base[output] else math.nan
            ends = over.at(0.0), over.at(1.0)
            effects.append(Effect(path, output, *ends, base[output], low[output], high[output], swing))
    order = {output: place for place, output in enumerate(search.outputs)}
    return sorted(effects, key=lambda effect: (order[effect.output], -abs(effect.swing)))


def _indices(figures: Figures, search: Sensitivity) -> list[SobolIndex]:
    paths = list(search.paths)

    def outputs(shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a row for each output and a column for each point, whose shares of the ranges are a column."""
        columns = []
        for point in shares.T.tolist():
            settings = {path: search.paths[path].at(share) for path, share in zip(paths, point, strict=True)}
            found = figures.of(settings, search.outputs)
            columns.append([found[output] for output in search.outputs])
        return np.array(columns).T

    return sobol_indices(outputs, paths, search.outputs, search.sobol_points, figures.base.seed)


class _Contest:
    """Rivals, of which the cheapest by output token within the SLO is the best."""

    def __init__(self, figures: Figures, rivals: Mapping[str, Settings]) -> None:
        self._figures, self._rivals = figures, rivals

    def best(self, settings: Settings) -> str:
        """Return the name of the best rival with those *settings* beside its own; ``none`` if no one keeps the SLO."""
        prices = {name: self._price(name, settings) for name in self._rivals}
        best = min(prices, key=lambda name: prices[name])
        return best if math.isfinite(prices[best]) else _NOBODY

    def switches(self, paths: Mapping[str, Range], steps: int) -> list[Switch]:
        """Return where the best changes along each of *paths*, located by bisection between neighbouring steps."""
        return [switch for path, over in paths.items() for switch in self._along(path, over, steps)]

    def _along(self, path: str, over: Range, steps: int) -> list[Switch]:
        shares = [step / steps for step in range(steps + 1)]
        best = [self.best({path: over.at(share)}) for share in shares]
        pairs = zip(shares, shares[1:], best, best[1:], strict=False)
        return [
            self._switch(path, over, (low, high), (before, after))
            for low, high, before, after in pairs
            if before != after
        ]

    def _switch(self, path: str, over: Range, shares: tuple[float, float], names: tuple[str, str]) -> Switch:
        (low, high), (before, after) = shares, names
        while high - low > _CLOSE and over.at(low) != over.at(high):
            middle = (low + high) / 2
            found = self.best({path: over.at(middle)})
            low, high, after = (middle, high, after) if found == before else (low, middle, found)
        settings = {path: over.at(high)}
        return Switch(path, float(over.at(high)), before, after, self._reason(before, after, settings))

    def _reason(self, before: str, after: str, settings: Settings) -> str:
        if before == _NOBODY:
            return f"{after} keeps the SLO"
        if missed := self._figures.missed(self._of(before, settings)):
            return f"{before} misses {missed}"
        prices = (f"{name} ${self._price(name, settings):.3f}" for name in (after, before))
        return f"by the million output tokens, {' and '.join(prices)}"

    def _price(self, name: str, settings: Settings) -> float:
        chosen = self._of(name, settings)
        if self._figures.missed(chosen):
            return math.inf
        return self._figures.of(chosen, ("usd_per_mtok",))["usd_per_mtok"]

    def _of(self, name: str, settings: Settings) -> Settings:
        return {**self._rivals[name], **settings}


