"""An experiment made ready: profiles loaded, flags decided, memory planned."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from sim.cluster import Engine, Timeouts
from sim.cost import Roofline
from sim.cost.step import RooflineStep
from sim.experiment import Experiment
from sim.memory import MemoryPlan
from sim.profiles.calibrated import HardwareCalibration
from sim.profiles.calibrated_engine import EngineConstants
from sim.profiles.draft import Draft
from sim.profiles.engine import EngineVersion
from sim.profiles.hardware import Hardware
from sim.profiles.model import Model
from sim.scheduler import Scheduler
from sim.simulate.drafting import draft_of
from sim.simulate.flags import Flags, decide
from sim.simulate.memory import kv_pool, memory_plan
from sim.simulate.offload import swap_of, tiers_of
from sim.simulate.profiles import profiles_of
from sim.simulate.step_cost import step_cost
from sim.simulate.structured import structure_of

__all__ = ["Setup", "prepare"]


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
        cost = step_cost(experiment, self.model, self.hardware, version, self.flags, constants, self.draft, kernels)
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
    model, hardware, version, constants = profiles_of(experiment)
    flags, options = decide(experiment, model, hardware, version), experiment.engine
    draft = draft_of(experiment, model, flags)
    given = options.num_gpu_blocks_override
    memory = None if given else memory_plan(experiment, model, hardware, version, flags, draft)
    pool = kv_pool(experiment, memory, flags)
    structure = structure_of(experiment, version)
    engine = Engine(
        scheduler=flags.scheduler,
        cost=step_cost(experiment, model, hardware, version, flags, constants, draft),
        num_blocks=pool.num_blocks,
        block_size=pool.block_size,
        prefix_caching=pool.prefix_caching,
        cache_generated=flags.cache_generated,
        partial_blocks=flags.partial_reuse,
        max_model_len=flags.max_model_len,
        by_iteration=experiment.stride == "off",
        timeouts=Timeouts(options.request_timeout_s or math.inf, options.queue_timeout_s or math.inf),
        attention_ranks=_attention_ranks(experiment, flags.scheduler),
        pages=pool.pages,
        tiers=tiers_of(experiment, model, hardware, pool.pages, pool.block_size),
        swap=swap_of(experiment, model, hardware, flags.scheduler, pool.block_size),
        eviction=options.eviction,
        write=options.kv_offload.write if options.kv_offload else "write_through",
        acceptances=None if options.speculative is None else options.speculative.draws(experiment.seed),
        decides_ahead=_decides_ahead(experiment, version, flags.scheduler),
        compile_s=0.0 if structure is None or not isinstance(experiment.cost_model, Roofline) else structure.compile_s,
    )
    return Setup(model, hardware, version, flags, memory, constants, engine, draft)


def _decides_ahead(experiment: Experiment, version: EngineVersion, scheduler: Scheduler) -> bool:
    """Tell whether iterations are decided ahead.

    vLLM does not with other drafts than these (`config/vllm.py`), until its pull request 48341 also not with those of a
    model. Pipelines, which it refused until 32359, and attention ranks in lockstep are left out here. Affine costs take
    the bare rules.
    """
    parallelism, drafts = experiment.deployment.parallelism, experiment.engine.speculative
    can = parallelism.dp == parallelism.pp == 1 and (drafts is None or drafts.kind in ("eagle", "mtp"))
    rules = isinstance(experiment.cost_model, Roofline) and scheduler.kind == "chunked_prefill"
    return version.decides_ahead and can and rules


def _attention_ranks(experiment: Experiment, scheduler: Scheduler) -> int:
    """Return the ranks with requests of their own; raise `ConfigError` where they cannot keep in step."""
    parallelism = experiment.deployment.parallelism
    if parallelism.dp > 1 and scheduler.keeps_batch:
        raise experiment.error("engine.scheduler.kind", f"{scheduler.kind} does not run on dp {parallelism.dp} ranks")
    if parallelism.dp > 1 and parallelism.pp > 1:
        raise experiment.error("deployment.parallelism.dp", "dp and pp are not simulated together")
    return parallelism.dp
