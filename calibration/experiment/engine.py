"""The engine of a case: its version, and the options that differ from its defaults."""

from __future__ import annotations

import math
from typing import Any

from calibration.cases.disaggregated import is_disaggregated
from calibration.cases.inferencex import is_inferencex
from calibration.cases.names import version_of
from calibration.cases.not_modelled import NotModelledError
from calibration.experiment.deployment import ranks_of
from calibration.experiment.draft import Draft
from calibration.experiment.lengths import bounds
from calibration.experiment.workload import repeats
from sim.policy import kinds_of
from sim.scheduler import Scheduler

__all__ = ["engine"]

_CONTEXT_MARGIN = 1.1
_FLAGS = ("max_num_seqs", "max_num_batched_tokens")
_INFERENCEX_PATIENCE = 60
_TENSORRT_TOKENS = 8192
"""Default of max_num_tokens."""


def engine(draft: Draft) -> dict[str, Any]:
    """Return `engine` of the experiment."""
    case = draft.case
    kind, version, scheduler = version_of(case, draft.assumed)
    options: dict[str, Any] = {"kind": kind, "version": version, "max_model_len": _max_model_len(draft)}
    if utilization := case.number("gpu_memory_utilization"):
        options["gpu_memory_utilization"] = utilization
    # Where no prompts begin alike nothing can be found again, and looking for it would only take time.
    options["prefix_caching"] = repeats(case) and case.text("prefix_caching") != "False"
    if blocks := case.whole("kv_blocks") or _batch_context(draft, kind):
        options["num_gpu_blocks_override"] = blocks
    if size := case.whole("kv_block_size"):
        options["block_size"] = size
    options["scheduler"] = _scheduler(draft, scheduler)
    return options


def _batch_context(draft: Draft, kind: str) -> int | None:
    """Return the cells that a batch of llama.cpp takes: its benchmarks make the context as long as all of it."""
    if kind != "llama-cpp" or draft.case.text("load_type") != "batch":
        return None
    return (draft.case.whole("load_value") or 1) * (sum(bounds(draft)) + 1)


def _scheduler(draft: Draft, of_version: str) -> dict[str, Any]:
    case = draft.case
    if case.text("load_type") == "batch":
        return {"kind": "static", "batch_size": case.whole("load_value") or 1}
    kind = of_version
    if kind not in kinds_of("sim.scheduler", Scheduler):
        draft.assumed.append(f"scheduler {kind} is not simulated: chunked_prefill")
        kind = "chunked_prefill"
    flags = {flag: case.whole(flag) for flag in _FLAGS}
    if kind == "inflight" and flags["max_num_batched_tokens"] is None:
        flags["max_num_batched_tokens"] = _whole_prompts(draft)
    if kind == "inflight" and is_inferencex(case) and not is_disaggregated(case) and ranks_of(draft).dp > 1:
        draft.assumed.append("prompts wait for those of other attention ranks, as InferenceX sets attention_dp_config")
        flags["attention_dp_timeout_iters"] = _INFERENCEX_PATIENCE
    return {"kind": kind} | {flag: value for flag, value in flags.items() if value is not None}


def _whole_prompts(draft: Draft) -> int | None:
    """Return a budget that holds a whole prompt beside all decodes, as whoever does not cut prompts must set it.

    InferenceX rounds prompt + users + 64 up to a multiple of 64 for TensorRT-LLM. None where the default does.
    """
    users = draft.case.whole("load_value") or 1 if draft.case.text("load_type") == "concurrency" else 1
    needed = -(-(bounds(draft)[0] + users + 64) // 64) * 64
    if needed <= _TENSORRT_TOKENS:
        return None
    draft.assumed.append(f"max_num_batched_tokens {needed}: prompts are not cut")
    return needed


def _max_model_len(draft: Draft) -> int:
    """Return the stated length, else one that holds what is sent: nobody serves more than fits."""
    stated, limit = draft.case.whole("max_model_len"), draft.model.max_position_embeddings
    longest_in, longest_out = bounds(draft)
    needed = longest_in + longest_out
    if stated is not None and needed <= stated <= limit:
        return stated
    if needed > limit:
        raise NotModelledError(f"{needed} tokens are beyond the model's {limit}")
    return min(limit, max(2048, math.ceil(needed * _CONTEXT_MARGIN)))
