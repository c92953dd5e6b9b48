"""An experiment made ready: profiles loaded, flags decided, memory planned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sim.cluster import Engine
from sim.cost import Roofline, StepCost
from sim.errors import ProfileError
from sim.experiment import Experiment
from sim.memory import Limits, MemoryPlan, nearest_fits, plan_memory
from sim.profiles.engine import EngineVersion
from sim.profiles.hardware import Hardware
from sim.profiles.library import load_calibrated_hardware, load_engine, load_hardware, load_model, names
from sim.profiles.model import Model
from sim.simulate.flags import Flags, decide

__all__ = ["Setup", "memory_plan", "prepare"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Setup:
    """What an experiment amounts to.

    Attributes
    ----------
    memory
        The plan that gave the KV blocks; None where ``num_gpu_blocks_override`` did.
    engine
        What every replica runs.
    """

    model: Model
    hardware: Hardware
    version: EngineVersion
    flags: Flags
    memory: MemoryPlan | None
    engine: Engine


def prepare(experiment: Experiment) -> Setup:
    """Load the profiles of *experiment*, decide its flags and plan its memory.

    Raises
    ------
    ConfigError, ProfileError
        For names and values that cannot be used, or not together.
    InfeasibleError
        If the model does not fit.
    """
    model, hardware, version = _profiles(experiment)
    flags = decide(experiment, model, hardware, version)
    blocks = experiment.engine.num_gpu_blocks_override
    memory = None if blocks else memory_plan(experiment, model, hardware, version, flags)
    if memory is not None:
        blocks = _blocks(memory)
    engine = Engine(
        scheduler=flags.scheduler,
        cost=_cost(experiment, model, hardware, version),
        num_blocks=blocks or 0,
        block_size=flags.block_size if memory is None else memory.block_size,
        prefix_caching=flags.prefix_caching,
        cache_generated=flags.cache_generated,
        max_model_len=flags.max_model_len,
        by_iteration=experiment.stride == "off",
    )
    return Setup(model, hardware, version, flags, memory, engine)


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
    return plan_memory(model, hardware, deployment.quantization, deployment.parallelism, version.memory, limits)


def _profiles(experiment: Experiment) -> tuple[Model, Hardware, EngineVersion]:
    chosen, beside = experiment.engine, experiment.folder
    model = _named(experiment, "model", lambda: load_model(experiment.model, beside))
    hardware = _named(experiment, "deployment.gpu", lambda: load_hardware(experiment.deployment.gpu, beside))
    engine = _named(experiment, "engine.kind", lambda: load_engine(chosen.kind, beside))
    return model, hardware, _named(experiment, "engine.version", lambda: engine.at(chosen.version))


def _named(experiment: Experiment, path: str, load: Callable[[], T]) -> T:
    """Load a profile; a name that nobody knows is an error of the experiment's line that has it."""
    try:
        return load()
    except ProfileError as problem:
        if problem.file is not None:
            raise
        raise experiment.error(path, problem.message) from None


def _cost(experiment: Experiment, model: Model, hardware: Hardware, version: EngineVersion) -> StepCost:
    deployment, beside = experiment.deployment, experiment.folder
    if deployment.parallelism.dp > 1:
        refusal = "attention data parallel is not simulated yet; use replicas"
        raise experiment.error("deployment.parallelism.dp", refusal)
    if not isinstance(experiment.cost_model, Roofline):
        step: StepCost = experiment.cost_model.build()
        return step
    calibrated = _named(experiment, "deployment.gpu", lambda: load_calibrated_hardware(deployment.gpu, beside))
    return experiment.cost_model.build(
        model, hardware, deployment.quantization, deployment.parallelism, version, calibrated
    )


