"""The profiles that an experiment names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sim.cost import Roofline
from sim.errors import ProfileError
from sim.experiment import Experiment
from sim.profiles.calibrated_engine import EngineConstants
from sim.profiles.engine import Engine, EngineVersion
from sim.profiles.folders import exists
from sim.profiles.hardware import Hardware
from sim.profiles.library import load_calibrated_engine, load_engine, load_hardware, load_model
from sim.profiles.model import Model
from sim.simulate.support import require_support

__all__ = ["constants_name", "named", "profiles_of"]

T = TypeVar("T")


def profiles_of(experiment: Experiment) -> tuple[Model, Hardware, EngineVersion, EngineConstants | None]:
    """Return what *experiment* names; raise `ConfigError` at the line that has a name that nobody knows."""
    chosen, beside = experiment.engine, experiment.folder
    model = named(experiment, "model", lambda: load_model(experiment.model, beside))
    hardware = named(experiment, "deployment.gpu", lambda: load_hardware(experiment.deployment.gpu, beside))
    if experiment.deployment.interconnect == "pcie":
        hardware = hardware.over_pcie()
    engine = named(experiment, "engine.kind", lambda: load_engine(chosen.kind, beside))
    require_support(experiment, engine, model, hardware)
    version = named(experiment, "engine.version", lambda: engine.at(chosen.version))
    constants = _constants(experiment, engine, hardware)
    return model, hardware, version if constants is None else constants.applied_to(version), constants


def constants_name(experiment: Experiment, engine: Engine) -> str | None:
    """Return the name of the fitted constants of *engine*: the experiment's for them, or the engine's own; or None."""
    chosen, own = experiment.engine.calibration, engine.behind or engine.name
    if chosen == "none" or not isinstance(experiment.cost_model, Roofline):
        return None
    if chosen is None and not exists("calibrated/engines", own, experiment.folder):
        return None
    return chosen or own


def _constants(experiment: Experiment, engine: Engine, hardware: Hardware) -> EngineConstants | None:
    chosen, beside = experiment.engine, experiment.folder
    name = constants_name(experiment, engine)
    if name is None:
        return None
    fitted = named(experiment, "engine.calibration", lambda: load_calibrated_engine(name, beside))
    return fitted.of(chosen.version, hardware)


def named(experiment: Experiment, path: str, load: Callable[[], T]) -> T:
    """Load a profile; a name that nobody knows is an error of the experiment's line that has it."""
    try:
        return load()
    except ProfileError as problem:
        if problem.file is not None:
            raise
        raise experiment.error(path, problem.message) from None
