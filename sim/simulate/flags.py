"""The engine's flags: as the experiment writes them, else as the engine version or the model has them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from pydantic import ValidationError

from sim.errors import did_you_mean
from sim.experiment import EngineOptions, Experiment
from sim.policy import kinds_of
from sim.profiles.engine import EngineVersion
from sim.profiles.engine_memory import ProfiledMemory
from sim.profiles.hardware import Hardware
from sim.profiles.model import Model
from sim.scheduler import Scheduler

__all__ = ["Flags", "decide"]


@dataclass(frozen=True, slots=True)
class Flags:
    """Every flag of the engine, decided; named and measured as in `EngineOptions`."""

    scheduler: Scheduler
    gpu_memory_utilization: float | None
    prefix_caching: bool
    cache_generated: bool
    partial_reuse: bool
    block_size: int
    max_model_len: int

    def left_open(self, options: EngineOptions) -> Iterator[tuple[str, Any]]:
        """Yield the dotted path and value of every flag that *options* left open."""
        for flag in fields(self):
            if flag.name != "scheduler" and getattr(options, flag.name) is None:
                yield f"engine.{flag.name}", getattr(self, flag.name)
        written = options.scheduler.model_fields_set if options.scheduler is not None else ()
        for name, value in self.scheduler.model_dump().items():
            if name not in written:
                yield f"engine.scheduler.{name}", value


def decide(experiment: Experiment, model: Model, hardware: Hardware, version: EngineVersion) -> Flags:
    """Return the flags of *experiment* on this engine version, model and hardware."""

    def flag(name: str) -> Any:
        written = getattr(experiment.engine, name)
        return getattr(version, name) if written is None else written

    max_model_len = experiment.engine.max_model_len or model.max_position_embeddings
    return Flags(
        scheduler=_scheduler(experiment, version, hardware, max_model_len),
        gpu_memory_utilization=flag("gpu_memory_utilization"),
        prefix_caching=_prefix_caching(experiment, model, version),
        cache_generated=flag("cache_generated"),
        partial_reuse=flag("partial_reuse"),
        block_size=flag("block_size"),
        max_model_len=max_model_len,
    )


def _prefix_caching(experiment: Experiment, model: Model, version: EngineVersion) -> bool:
    """Return whether prefixes are kept: not where linear layers have states, which vLLM keeps for nobody else.

    Prefix caching of such models is off by default there, and found nothing in releases up to 0.26 (vllm-project/vllm
    #25874, #51198).
    """
    written = experiment.engine.prefix_caching
    if not isinstance(version.memory, ProfiledMemory) or not model.state_bytes_per_sequence:
        return version.prefix_caching if written is None else written
    if written:
        raise experiment.error("engine.prefix_caching", f"the states of {model.name} are not cached; leave it out")
    return False


def _scheduler(experiment: Experiment, version: EngineVersion, hardware: Hardware, max_model_len: int) -> Scheduler:
    """Return the experiment's scheduler, else the engine version's; what it leaves open is as the version has it.

    With affine costs the bare rules of an iteration hold: the version's own deviations from them do not count.
    """
    written = experiment.engine.scheduler
    kinds = kinds_of("sim.scheduler", Scheduler)
    if written is None and version.scheduler not in kinds:
        known = f"write engine.scheduler with one of {', '.join(kinds)}{did_you_mean(version.scheduler, kinds)}"
        raise experiment.error("engine.kind", f"its scheduler {version.scheduler!r} is not simulated; {known}")
    chosen = kinds[version.scheduler] if written is None else type(written)
    offline = experiment.workload.arrivals.kind == "offline"
    max_num_seqs, tokens = version.limits_on(hardware, offline=offline, max_model_len=max_model_len)
    defaults: dict[str, Any] = {"max_num_seqs": max_num_seqs, "max_num_batched_tokens": tokens}
    if chosen is kinds.get(version.scheduler) and experiment.cost_model.kind != "affine":
        defaults |= version.scheduler_options
    given = {} if written is None else written.model_dump(exclude_unset=True)
    options = {name: value for name, value in defaults.items() if name in chosen.model_fields}
    try:
        return chosen(**options | given)
    except ValidationError as problem:
        wrong, first = ".".join(map(str, problem.errors()[0]["loc"])), problem.errors()[0]["msg"]
        said = f"its profile has a scheduler_options.{wrong} that the scheduler does not take: {first}"
        raise experiment.error("engine.kind", said) from None
