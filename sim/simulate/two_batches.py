"""When an engine splits its batches into two halves that overlap."""

from __future__ import annotations

from sim.cost.two_batches import Thresholds
from sim.experiment import Experiment
from sim.profiles.engine import Engine

__all__ = ["thresholds_of"]

_FLAGS = {"vllm": "enable_dbo", "sglang": "enable_two_batch_overlap"}
_NEEDS_DBO = ("dbo_decode_token_threshold", "dbo_prefill_token_threshold")
_DBO = Thresholds(32, 512)
_ANY = Thresholds(2, 2)


def thresholds_of(experiment: Experiment, engine: Engine) -> Thresholds | None:
    """Return from how many tokens on batches are split; None if none is.

    Raises
    ------
    ConfigError
        For flags of another engine, or without what they need.
    """
    options, own = experiment.engine, _FLAGS.get(engine.behind or engine.name)
    for flag in _FLAGS.values():
        if getattr(options, flag) and flag != own:
            instead = f"; its own is {own}" if own else ""
            raise experiment.error(f"engine.{flag}", f"{engine.name} has no such flag{instead}")
    for threshold in _NEEDS_DBO:
        if getattr(options, threshold) is not None and not options.enable_dbo:
            raise experiment.error(f"engine.{threshold}", "is of no use without enable_dbo")
    if own is None or not getattr(options, own):
        return None
    if options.all_to_all is None or experiment.deployment.parallelism.dp == 1:
        needs = "needs deployment.parallelism.dp above 1, and engine.all_to_all, whose library it overlaps with"
        raise experiment.error(f"engine.{own}", needs)
    if own != "enable_dbo":
        return _ANY
    decode, prefill = options.dbo_decode_token_threshold, options.dbo_prefill_token_threshold
    return Thresholds(decode or _DBO.decode_tokens, prefill or _DBO.prefill_tokens)
