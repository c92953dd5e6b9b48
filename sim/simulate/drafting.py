"""The model that drafts for the one that is served."""

from __future__ import annotations

from dataclasses import replace

from sim.errors import ConfigError
from sim.experiment import Experiment
from sim.profiles.draft import Draft
from sim.profiles.library import load_model
from sim.profiles.model import Model
from sim.simulate.flags import Flags
from sim.simulate.profiles import named
from sim.speculation import Speculation

__all__ = ["draft_of"]


def draft_of(experiment: Experiment, model: Model, flags: Flags) -> Draft | None:
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
    ranks = _ranks(experiment)
    draft = named(experiment, "engine.speculative.model", lambda: _drafted(experiment, speculative, model))
    if draft is None and ranks is not None:
        unused = f"is of no use with {speculative.kind}: no model drafts"
        raise experiment.error("engine.speculative.draft_tensor_parallel_size", unused)
    return draft and replace(draft, tp=ranks)


def _drafted(experiment: Experiment, speculative: Speculation, model: Model) -> Draft | None:
    """Return what drafts for *model*; raise `ConfigError` where there can be no such draft."""
    beside, quantization = experiment.folder, experiment.deployment.quantization
    try:
        return speculative.draft(model, quantization, lambda name: load_model(name, beside))
    except ConfigError as problem:
        raise experiment.error("engine.speculative.kind", problem.message) from None


def _ranks(experiment: Experiment) -> int | None:
    """Return how many accelerators share the draft, None for all; raise `ConfigError` where they cannot."""
    speculative, parallelism = experiment.engine.speculative, experiment.deployment.parallelism
    shared = None if speculative is None else speculative.draft_tensor_parallel_size
    if shared is not None and (shared not in (1, parallelism.tp) or parallelism.dp > 1):
        allowed = f"1 or {parallelism.tp}, the model's tp; with dp, it is left out"
        raise experiment.error("engine.speculative.draft_tensor_parallel_size", f"must be {allowed}")
    return shared
