"""The model that drafts for the one that is served."""

from __future__ import annotations

from sim.errors import ConfigError, ProfileError
from sim.experiment import Experiment
from sim.profiles.draft import Draft
from sim.profiles.library import load_model
from sim.profiles.model import Model
from sim.simulate.flags import Flags

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
    beside, quantization = experiment.folder, experiment.deployment.quantization
    try:
        return speculative.draft(model, quantization, lambda name: load_model(name, beside))
    except ConfigError as problem:
        raise experiment.error("engine.speculative.kind", problem.message) from None
    except ProfileError as problem:
        if problem.file is not None:
            raise
        raise experiment.error("engine.speculative.model", problem.message) from None
