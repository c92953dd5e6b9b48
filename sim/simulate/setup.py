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
from sim.profiles.calibrated import HardwareCalibration
from sim.profiles.calibrated_engine import EngineConstants
from sim.profiles.draft import Draft
from sim.profiles.engine import Engine as EngineProfile
from sim.profiles.engine import EngineVersion
from sim.profiles.folders import exists, names
from sim.profiles.hardware import Hardware
from sim.profiles.layers import MoeMlp
from sim.profiles.library import (
    load_all_to_all,
    load_calibrated_engine,
    load_calibrated_hardware,
    load_engine,
    load_hardware,
    load_model,
)
from sim.profiles.model import Model
from sim.scheduler import Scheduler
from sim.simulate.block_tables import pages_of
from sim.simulate.flags import Flags, decide
from sim.simulate.graphs import largest_graph, launches_of, padding_of
from sim.simulate.offload import swap_of, tiers_of
from sim.simulate.structured import structure_of
from sim.simulate.support import require_support
from sim.simulate.two_batches import thresholds_of

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
    draft
        The model that drafts for the one that is served; None where none does.
    """

    model: Model
    hardware: Hardware
    version: EngineVersion
    flags: Flags
    memory: MemoryPlan | None
    constants: EngineConstants | None
    engine: Engine
    draft: Draft | None = None

    @property
    def stream_lag_iterations(self) -> float:
        """Iterations by which a client sees tokens late; 0 where the cost model is no engine's."""
        return self.version.stream_lag_iterations if isinstance(self.engine.cost, RooflineStep) else 0.0

    def with_constants(
        self, experiment: Experiment, constants: EngineConstants | None, kernels: HardwareCalibration | None = None
    ) -> Setup:
        """Return the same with other *constants*, and *kernels* if given, so that no memory need be planned again."""
        version = self.version if constants is None else constants.applied_to(self.version)
        cost = _cost(experiment, self.model, self.hardware, version, constants, self.draft, kernels)
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
    draft = _draft(experiment, model, flags)
    memory = None if blocks else memory_plan(experiment, model, hardware, version, flags, draft)
    paged = experiment.engine.kv_layout == "paged"
    pages = None if memory is None or not paged else pages_of(memory, flags.scheduler.longest_chunk)
    if memory is not None:
        blocks = _blocks(memory) if pages is None else _fitting(memory).num_blocks
    block_size = pages.block_size if pages else memory.block_size if memory else flags.block_size
    if not paged:
        blocks, block_size = (blocks or 0) * block_size // flags.max_model_len, flags.max_model_len
    prefix_caching = flags.prefix_caching and paged and (pages is None or pages.full > 0)
    if experiment.engine.kv_offload is not None and not prefix_caching:
        raise experiment.error("engine.kv_offload", "there is no prefix cache whose blocks it could keep")
    if experiment.engine.eviction != "lru" and not prefix_caching:
        raise experiment.error("engine.eviction", "there is no prefix cache whose blocks could be evicted")
    speculative, structure = experiment.engine.speculative, structure_of(experiment, version)
    engine = Engine(
        scheduler=flags.scheduler,
        cost=_cost(experiment, model, hardware, version, constants, draft),
        num_blocks=blocks or 0,
        block_size=block_size,
        prefix_caching=prefix_caching,
        cache_generated=flags.cache_generated,
        partial_blocks=flags.partial_reuse,
        max_model_len=flags.max_model_len,
        by_iteration=experiment.stride == "off",
        timeouts=Timeouts(
            request_s=experiment.engine.request_timeout_s or math.inf,
            queue_s=experiment.engine.queue_timeout_s or math.inf,
        ),
        attention_ranks=_attention_ranks(experiment, flags.scheduler),
        pages=pages,
        tiers=tiers_of(experiment, model, hardware, pages, block_size),
        swap=swap_of(experiment, model, hardware, flags.scheduler, block_size),
        eviction=experiment.engine.eviction,
        write=experiment.engine.kv_offload.write if experiment.engine.kv_offload else "write_through",
        acceptances=None if speculative is None else speculative.draws(experiment.seed),
        compile_s=0.0 if structure is None or not isinstance(experiment.cost_model, Roofline) else structure.compile_s,
    )
    return Setup(model, hardware, version, flags, memory, constants, engine, draft)


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
    longest = memory.deployment.limits.max_model_len
    return round(_fitting(memory).max_concurrency * -(-longest // memory.block_size))


def _fitting(memory: MemoryPlan) -> MemoryPlan:
    if not memory.fits:
        memory.require(nearest_fits(memory, map(load_hardware, names("hardware"))))
    return memory


def memory_plan(
    experiment: Experiment,
    model: Model,
    hardware: Hardware,
    version: EngineVersion,
    flags: Flags,
    draft: Draft | None = None,
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
        cuda_graphs=experiment.engine.max_captured_batch != 0,
        largest_graph=largest_graph(experiment, hardware, version),
    )
    deployment = experiment.deployment
    if experiment.moe is not None:
        model = experiment.moe.stored(model, deployment.quantization)
    quantization, parallelism = deployment.quantization, deployment.parallelism
    return plan_memory(model, hardware, quantization, parallelism, version.memory, limits, draft)


def _draft(experiment: Experiment, model: Model, flags: Flags) -> Draft | None:
    """Return the model that drafts, if any does; raise `ConfigError` where there can be none."""
    speculative = experiment.engine.speculative
    if speculative is None:
        return None
    each = 1 + speculative.num_speculative_tokens
    budget = getattr(flags.scheduler, "max_num_batched_tokens", each)
    if budget < each:
        raise experiment.error(
            "engine.speculative.num_speculative_tokens",
            f"a sequence verifies {each} tokens at once, which max_num_batched_tokens {budget} never allows",
        )
    beside, quantization = experiment.folder, experiment.deployment.quantization
    try:
        return speculative.draft(model, quantization, lambda name: load_model(name, beside))
    except ConfigError as problem:
        raise experiment.error("engine.speculative.kind", problem.message) from None
    except ProfileError as problem:
        if problem.file is not None:
            raise
        raise experiment.error("engine.speculative.model", problem.message) from None


def _profiles(experiment: Experiment) -> tuple[Model, Hardware, EngineVersion, EngineConstants | None]:
    chosen, beside = experiment.engine, experiment.folder
    model = _named(experiment, "model", lambda: load_model(experiment.model, beside))
    hardware = _named(experiment, "deployment.gpu", lambda: load_hardware(experiment.deployment.gpu, beside))
    if experiment.deployment.interconnect == "pcie":
        hardware = hardware.over_pcie()
    engine = _named(experiment, "engine.kind", lambda: load_engine(chosen.kind, beside))
    require_support(experiment, engine, model, hardware)
    version = _named(experiment, "engine.version", lambda: engine.at(chosen.version))
    constants = _constants(experiment, engine, hardware)
    return model, hardware, version if constants is None else constants.applied_to(version), constants


def constants_name(experiment: Experiment, engine: EngineProfile) -> str | None:
    """Return the name of the fitted constants of *engine*: the experiment's for them, or the engine's own; or None."""
    chosen, own = experiment.engine.calibration, engine.behind or engine.name
    if chosen == "none" or not isinstance(experiment.cost_model, Roofline):
        return None
    if chosen is None and not exists("calibrated/engines", own, experiment.folder):
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
    draft: Draft | None,
    kernels: HardwareCalibration | None = None,
) -> StepCost:
    deployment, beside, speculative = experiment.deployment, experiment.folder, experiment.engine.speculative
    draft_s = (speculative and speculative.draft_s) or 0.0
    draft_tokens = speculative.num_speculative_tokens if speculative else 0
    if not isinstance(experiment.cost_model, Roofline):
        step: StepCost = experiment.cost_model.build(draft_tokens=draft_tokens, draft_s=draft_s)
        return step
    calibrated = kernels or _named(
        experiment, "deployment.gpu", lambda: load_calibrated_hardware(deployment.gpu, beside)
    )
    engine = load_engine(experiment.engine.kind, beside)
    roofline = _factored(experiment.cost_model, constants, engine.behind or engine.name)
    mixture, library, structure = _mixture(experiment, model), _library(experiment), structure_of(experiment, version)
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
            launches=launches_of(experiment, model, hardware, version),
            padding=padding_of(experiment, hardware, version),
            thresholds=thresholds_of(experiment, engine),
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
