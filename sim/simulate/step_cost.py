"""The cost model of an experiment, with the constants, experts and libraries that it needs."""

from __future__ import annotations

from typing import Any

from sim.cost import Roofline, StepCost
from sim.cost.all_to_all import Library
from sim.errors import ConfigError
from sim.experiment import Experiment
from sim.moe.mixture import Mixture
from sim.profiles.calibrated import HardwareCalibration
from sim.profiles.calibrated_engine import EngineConstants
from sim.profiles.draft import Draft
from sim.profiles.engine import EngineVersion
from sim.profiles.hardware import Hardware
from sim.profiles.layers import MoeMlp
from sim.profiles.library import load_all_to_all, load_calibrated_hardware, load_engine
from sim.profiles.model import Model
from sim.simulate.flags import Flags
from sim.simulate.graphs import launches_of, padding_of
from sim.simulate.profiles import named
from sim.simulate.structured import structure_of
from sim.simulate.two_batches import thresholds_of

__all__ = ["step_cost"]


def step_cost(
    experiment: Experiment,
    model: Model,
    hardware: Hardware,
    version: EngineVersion,
    flags: Flags,
    constants: EngineConstants | None,
    draft: Draft | None,
    kernels: HardwareCalibration | None = None,
) -> StepCost:
    """Return what iterations of *experiment* cost; *kernels* instead of those that are calibrated for its GPU.

    Raises
    ------
    ConfigError
        For options that are not modelled together.
    """
    deployment, beside, speculative = experiment.deployment, experiment.folder, experiment.engine.speculative
    draft_s = (speculative and speculative.draft_s) or 0.0
    draft_tokens = speculative.mean_draft_tokens if speculative else 0
    if not isinstance(experiment.cost_model, Roofline):
        step: StepCost = experiment.cost_model.build(draft_tokens=draft_tokens, draft_s=draft_s)
        return step
    calibrated = kernels or named(
        experiment, "deployment.gpu", lambda: load_calibrated_hardware(deployment.gpu, beside)
    )
    engine = load_engine(experiment.engine.kind, beside)
    roofline = _factored(experiment.cost_model, constants, engine.behind or engine.name)
    mixture, library = _mixture(experiment, model), _library(experiment, model)
    structure = structure_of(experiment, version)
    quantization, parallelism = version.multiplied_on(hardware, deployment.quantization), deployment.parallelism
    try:
        return roofline.build(
            model,
            hardware,
            quantization,
            parallelism,
            version,
            calibrated,
            mixture,
            library,
            draft=None if speculative and speculative.draft_s is not None else draft,
            draft_tokens=draft_tokens,
            draft_s=draft_s,
            masks=None if structure is None else structure.masks,
            launches=launches_of(experiment, model, hardware, version, flags),
            padding=padding_of(experiment, hardware, version, flags),
            thresholds=thresholds_of(experiment, engine),
        )
    except ConfigError as problem:
        if problem.file is not None:
            raise
        raise experiment.error(problem.path or "moe", problem.message) from None


def _library(experiment: Experiment, model: Model) -> Library | None:
    chosen, beside = experiment.engine.all_to_all, experiment.folder
    if chosen is None:
        return None
    if not _has_experts(model):
        raise experiment.error("engine.all_to_all", f"{model.name} has no routed experts")
    library = named(experiment, "engine.all_to_all.library", lambda: load_all_to_all(chosen.library, beside))
    return Library(library, chosen.mode)


def _mixture(experiment: Experiment, model: Model) -> Mixture | None:
    if experiment.moe is None:
        return None
    if not _has_experts(model):
        raise experiment.error("moe", f"{model.name} has no routed experts")
    return experiment.moe.beside(experiment.folder)


def _has_experts(model: Model) -> bool:
    return any(isinstance(kind.mlp, MoeMlp) for kind in model.layers)


def _factored(cost_model: Roofline, constants: EngineConstants | None, kernels: str) -> Roofline:
    """Return *cost_model* with the fitted factors on kernels and whose *kernels* they are, if it does not say so."""
    fitted: dict[str, Any] = {"kernels": kernels} | ({} if constants is None else constants.factors)
    left_open = {name: value for name, value in fitted.items() if name not in cost_model.model_fields_set}
    return cost_model.model_copy(update=left_open)
