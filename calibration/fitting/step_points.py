"""Iterations of step traces as points of a fit: each is asked of the cost model, and nothing is simulated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from calibration.cases.serving import ServingCase
from calibration.cases.steps import METRIC, Step, exact_decodes
from calibration.experiment.of_steps import experiment_of_steps
from calibration.runs import Steps
from sim.cost import StepCost
from sim.experiment import Experiment
from sim.profiles.calibrated_engine import EngineConstants
from sim.simulate import Setup, prepare

__all__ = ["StepPoint", "step_points"]

_NOISE = 0.05
_RUNS = 30


@dataclass(slots=True)
class _Deployment:
    """What a trace ran on; the cost of the constants that were asked for last is kept."""

    experiment: Experiment
    setup: Setup
    _last: tuple[EngineConstants, StepCost] | None = field(default=None, repr=False)

    def cost(self, constants: EngineConstants) -> StepCost:
        if self._last is None or self._last[0] is not constants:
            self._last = constants, self.setup.with_constants(self.experiment, constants).engine.cost
        return self._last[1]


@dataclass(frozen=True, slots=True)
class StepPoint:
    """One iteration."""

    case: ServingCase
    deployment: _Deployment
    step: Step
    noise_of_all: float
    """Error of each step that is taken as noise, so that all of its trace weigh as much as a few runs do."""
    assumed: Sequence[str]

    @property
    def setup(self) -> Setup:
        """The deployment with the engine profile's own constants."""
        return self.deployment.setup

    @property
    def measured(self) -> dict[str, float]:
        """Its time [ms]."""
        return {METRIC: self.step.measured_ms}

    def noise(self, _metric: str) -> float:
        """Return the error that is taken as noise."""
        return self.noise_of_all

    def predicted(self, constants: EngineConstants) -> dict[str, float]:
        """Return what the cost model says with *constants* [ms]."""
        return {METRIC: 1e3 * self.deployment.cost(constants).pace(self.step.batch).first_s}


def step_points(case: ServingCase, steps: Steps) -> Iterator[StepPoint]:
    """Yield a point for each of the `exact_decodes` of a trace; raise `NotModelledError` as `experiment_of_steps`.

    What the model lacks, it lacks for all steps of a trace alike: together they count as thirty runs at most.
    """
    prepared = experiment_of_steps(case, calibration="none")
    deployment = _Deployment(prepared.experiment, prepare(prepared.experiment))
    found = list(exact_decodes(steps))
    noise = _NOISE * max(1.0, math.sqrt(len(found) / _RUNS))
    for step in found:
        row = {**case.row, "case_id": f"{case.name}/{step.place}"}
        low = step.batch.decodes // 16 * 16
        users = {"load_type": "decodes", "load_value": f"{low} to {low + 15}"}
        yield StepPoint(ServingCase(row | users), deployment, step, noise, prepared.assumed)
