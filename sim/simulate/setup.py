"""An experiment made ready: profiles loaded, flags decided, memory planned."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from sim.cluster import Engine, Timeouts
from sim.cost import Roofline, StepCost
from sim.cost.all_to_all import Library
from sim.cost.step import RooflineStep
from sim.errors import ConfigError, ProfileError
from sim.experiment import Experiment
from sim.memory import Limits, MemoryPlan, nearest_fits, plan_memory
from sim.moe.mixture import Mixture
from sim.profiles.calibrated_engine import EngineConstants
from sim.profiles.engine import Engine as EngineProfile
from sim.profiles.engine import EngineVersion
from sim.profiles.hardware import Hardware
from sim.profiles.layers import MoeMlp
from sim.profiles.library import (
    load_all_to_all,
    load_calibrated_engine,
    load_calibrated_hardware,
    load_engine,
    load_hardware,
    load_model,
    names,
)
from sim.profiles.model import Model
from sim.scheduler import Scheduler
from sim.simulate.flags import Flags, decide
from sim.simulate.support import require_support

__all__ = ["Setup", "constants_name", "memory_plan", "prepare"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Setup:
    """What an experiment amounts to.

    Attributes
    ----------
    memory
        The plan that gave the KV blocks; None where ``num_gpu_blocks_override`` did.
    constants
        What serving runs say of the engine's own code; None: the version's own values hold.
    engine
        What every replica runs.
    """

    model: Model
    hardware: Hardware
    version: EngineVersion
    flags: Flags
    memory: MemoryPlan | None
    constants: EngineConstants | None
    engine: Engine

    @property
    def stream_lag_iterations(self) -> float:
        """Iterations by which a client sees tokens late; 0 where the cost model is no engine's."""
        return self.version.stream_lag_iterations if isinstance(self.engine.cost, RooflineStep) else 0.0

    def with_constants(self, experiment: Experiment, constants: EngineConstants) -> Setup:
        """Return the same with other *constants*, so that a fit need not plan the memory again."""
        version = constants.applied_to(self.version)
        cost = _cost(experiment, self.model, self.hardware, version, constants)
        return replace(self, version=version, constants=constants, engine=replace(self.engine, cost=cost))


def prepare(experiment: Experiment) -> Setup:
    """Load the profiles of *experiment*, decide its flags and plan its memory.

    Raises
    ------
    ConfigError, ProfileError
        For names and values that cannot be used, or not together.
    InfeasibleError
        If the model does not fit.
    """
    model, hardware, version, constants = _profiles(experiment)
    flags = decide(experiment, model, hardware, version)
    blocks = experiment.engine.num_gpu_blocks_override
    memory = None if blocks else memory_plan(experiment, model, hardware, version, flags)
    if memory is not None:
        blocks = _blocks(memory)
    block_size = flags.block_size if memory is None else memory.block_size
    if experiment.engine.kv_layout == "contiguous":
        blocks, block_size = (blocks or 0) * block_size // flags.max_model_len, flags.max_model_len
    engine = Engine(
        scheduler=flags.scheduler,
        cost=_cost(experiment, model, hardware, version, constants),
        num_blocks=blocks or 0,
        block_size=block_size,
        prefix_caching=flags.prefix_caching and experiment.engine.kv_layout == "paged",
        cache_generated=flags.cache_generated,
        partial_blocks=flags.partial_reuse,
        max_model_len=flags.max_model_len,
        by_iteration=experiment.stride == "off",
        timeouts=Timeouts(
            request_s=experiment.engine.request_timeout_s or math.inf,
            queue_s=experiment.engine.queue_timeout_s or math.inf,
        ),
        attention_ranks=_attention_ranks(experiment, flags.scheduler),
    )
    return Setup(model, hardware, version, flags, memory, constants, engine)


def _attention_ranks(experiment: Experiment, scheduler: Scheduler) -> int:
    """Return the ranks with requests of their own; raise `ConfigError` where they cannot keep in step."""
    parallelism = experiment.deployment.parallelism
    if parallelism.dp > 1 and scheduler.keeps_batch:
        raise experiment.error("engine.scheduler.kind", f"{scheduler.kind} does not run on dp {parallelism.dp} ranks")
    if parallelism.dp > 1 and parallelism.pp > 1:
        raise experiment.error("deployment.parallelism.dp", "dp and pp are not simulated together")
    return parallelism.dp


def _blocks(memory: MemoryPlan) -> int:
    """Return the blocks of the pool, each of which holds its tokens in all layers; raise if the plan does not fit."""
    if not memory.fits:
        memory.require(nearest_fits(memory, map(load_hardware, names("hardware"))))
    longest = memory.deployment.limits.max_model_len
    return round(memory.max_concurrency * -(-longest // memory.block_size))


def memory_plan(
    experiment: Experiment, model: Model, hardware: Hardware, version: EngineVersion, flags: Flags
) -> MemoryPlan:
    """Return the memory of a replica, which may not fit; raise `ConfigError` for a window the model does not have."""
    if flags.max_model_len > model.max_position_embeddings:
        window = f"{flags.max_model_len} is beyond the {model.max_position_embeddings} tokens of {model.name}"
        raise experiment.error("engine.max_model_len", window)
    options = flags.scheduler.model_dump()
    max_num_seqs, tokens = version.limits_on(hardware)
    limits = Limits(
        max_model_len=flags.max_model_len,
        max_num_seqs=options.get("max_num_seqs") or options.get("batch_size") or max_num_seqs,
        max_num_batched_tokens=options.get("max_num_batched_tokens") or tokens,
        gpu_memory_utilization=flags.gpu_memory_utilization,
        block_size=flags.block_size,
    )
    deployment = experiment.deployment
    if experiment.moe is not None:
        model = experiment.moe.stored(model, deployment.quantization)
    return plan_memory(model, hardware, deployment.quantization, deployment.parallelism, version.memory, limits)


def _profiles(experiment: Experiment) -> tuple[Model, Hardware, EngineVersion, EngineConstants | None]:
    chosen, beside = experiment.engine, experiment.folder
    model = _named(experiment, "model", lambda: load_model(experiment.model, beside))
    hardware = _named(experiment, "deployment.gpu", lambda: load_hardware(experiment.deployment.gpu, beside))
    if experiment.deployment.interconnect == "pcie":
        hardware = hardware.over_pcie()
    engine = _named(experiment, "engine.kind", lambda: load_engine(chosen.kind, beside))
    require_support(experiment, engine, hardware)
    version = _named(experiment, "engine.version", lambda: engine.at(chosen.version))
    constants = _constants(experiment, engine, hardware)
    return model, hardware, version if constants is None else constants.applied_to(version), constants


def constants_name(experiment: Experiment, engine: EngineProfile) -> str | None:
    """Return the name of the fitted constants of *engine*: the experiment's for them, or the engine's own; or None."""
    chosen, own = experiment.engine.calibration, engine.behind or engine.name
    if chosen == "none" or not isinstance(experiment.cost_model, Roofline):
        return None
    if chosen is None and own not in names("calibrated/engines", experiment.folder):
        return None
    return chosen or own


def _constants(experiment: Experiment, engine: EngineProfile, hardware: Hardware) -> EngineConstants | None:
    chosen, beside = experiment.engine, experiment.folder
    name = constants_name(experiment, engine)
    if name is None:
        return None
    fitted = _named(experiment, "engine.calibration", lambda: load_calibrated_engine(name, beside))
    return fitted.of(chosen.version, hardware)


def _named(experiment: Experiment, path: str, load: Callable[[], T]) -> T:
    """Load a profile; a name that nobody knows is an error of the experiment's line that has it."""
    try:
        return load()
    except ProfileError as problem:
        if problem.file is not None:
            raise
        raise experiment.error(path, problem.message) from None


def _cost(
    experiment: Experiment,
    model: Model,
    hardware: Hardware,
    version: EngineVersion,
    constants: EngineConstants | None,
) -> StepCost:
    deployment, beside = experiment.deployment, experiment.folder
    if not isinstance(experiment.cost_model, Roofline):
        step: StepCost = experiment.cost_model.build()
        return step
    calibrated = _named(experiment, "deployment.gpu", lambda: load_calibrated_hardware(deployment.gpu, beside))
    engine = load_engine(experiment.engine.kind, beside)
    roofline = _factored(experiment.cost_model, constants, engine.behind or engine.name)
    mixture, library = _mixture(experiment, model), _library(experiment)
    quantization, parallelism = version.multiplied_on(hardware, deployment.quantization), deployment.parallelism
    try:
        return roofline.build(
            model, hardware, quantization, parallelism, version, calibrated, mixture, library
        )
    except ConfigError as problem:
        if problem.file is not None:
            raise
        raise experiment.error(problem.path or "moe", problem.message) from None


def _library(experiment: Experiment) -> Library | None:
    chosen, beside = experiment.engine.all_to_all, experiment.folder
    if chosen is None:
        return None
    library = _named(experiment, "engine.all_to_all.library", lambda: load_all_to_all(chosen.library, beside))
    return Library(library, chosen.mode)


def _mixture(experiment: Experiment, model: Model) -> Mixture | None:
    if experiment.moe is None:
        return None
    if not any(isinstance(kind.mlp, MoeMlp) for kind in model.layers):
        raise experiment.error("moe", f"{model.name} has no routed experts")
    return experiment.moe.beside(experiment.folder)


def _factored(cost_model: Roofline, constants: EngineConstants | None, kernels: str) -> Roofline:
    """Return *cost_model* with the fitted factors on kernels and whose *kernels* they are, if it does not say so."""
    fitted: dict[str, Any] = {"kernels": kernels} | ({} if constants is None else constants.factors)
    left_open = {name: value for name, value in fitted.items() if name not in cost_model.model_fields_set}
    return cost_model.model_copy(update=left_open)
