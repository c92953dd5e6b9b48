"""A row of a file of serving benchmarks as an experiment, by stated rules; what they do not cover is refused."""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from calibration.case_names import gpu_of, is_moe, kv_dtype, model_name, quantization, version_of
from calibration.disaggregated_case import Side, disaggregation_of, engine_case, is_disaggregated, sides_of
from calibration.memory_cases import NotModelledError
from calibration.mixed_lengths import Part, mixed_lengths
from calibration.serving_cases import ServingCase
from sim.errors import ConfigError, InfeasibleError
from sim.experiment import Experiment, experiment_of
from sim.policy import kinds_of
from sim.profiles.library import load_hardware, load_model
from sim.profiles.model import Model
from sim.scheduler import Scheduler
from sim.simulate import ReadyPool, ready_pools
from sim.yamlfile import Document

__all__ = ["IF_KNOWN", "Prepared", "experiment_of_case", "prepared_to_fit"]

MOST_REQUESTS = 2560
"""Requests simulated of a longer run: ten times 256 users, or twice as many as there are users."""
OPEN_LOOP_REQUESTS = 2000
"""The same of an open loop, whose means need fewer."""
_MANY_PER_S = 100.0
"""Rate beyond which an open loop is simulated for as long as with this one: several answers long."""
_CONTEXT_MARGIN = 1.1
_ROOMIER = 0.95
IF_KNOWN = "; if you know: "
"""Parts what a case does not state from the options of the command line that say it."""
_EXAMPLES = {"model": "NAME", "engine": "vllm", "gpu": "H100-SXM-80GB", "tp": "N"}
_FLAGS = ("max_num_seqs", "max_num_batched_tokens")
_INFERENCEX_PATIENCE = 60
_TENSORRT_TOKENS = 8192
"""Default of max_num_tokens."""
_VLLM_KEEPS_PROMPTS = "2025-04"
"""Month from which on a version that is only guessed is one that does."""
_SHAREGPT_SIGMA = (1.2, 1.0)
"""Standard deviation of ln(length) of prompts and answers in the ShareGPT sample of ``vllm bench serve``."""


@dataclass(slots=True)
class Prepared:
    """The experiment of a case, and what had to be assumed for it."""

    experiment: Experiment
    assumed: list[str]


@dataclass(slots=True)
class _Draft:
    case: ServingCase
    model: Model
    open_loop_requests: int = OPEN_LOOP_REQUESTS
    assumed: list[str] = field(default_factory=list)


def experiment_of_case(case: ServingCase, open_loop_requests: int = OPEN_LOOP_REQUESTS) -> Prepared:
    """Return the experiment that repeats the run of *case*, with so many requests of an open loop at most.

    Raises
    ------
    NotModelledError
        The row lacks something, or used what is not simulated; the text is the reason.
    """
    _refuse_unmodelled(case)
    if is_disaggregated(case):
        case = engine_case(case)
    draft = _Draft(case, _model(case), open_loop_requests)
    data = {
        "name": case.name,
        "model": model_name(case),
        **_deployment(draft),
        "engine": _engine(draft),
        "workload": _workload(draft),
    }
    try:
        return Prepared(experiment_of(Document(data, f"case {case.name}", ConfigError, {})), draft.assumed)
    except ConfigError as problem:
        raise NotModelledError(problem.message) from None


def prepared_to_fit(
    case: ServingCase, open_loop_requests: int = OPEN_LOOP_REQUESTS
) -> tuple[Prepared, list[ReadyPool]]:
    """Return the experiment of *case* made ready.

    The run took place, so that its model did fit: where that is by a hair, more memory than the default was used.

    Raises
    ------
    NotModelledError, UserError
        As `experiment_of_case` and `ready_pools` do.
    InfeasibleError
        If it does not fit even so.
    """
    prepared = experiment_of_case(case, open_loop_requests)
    try:
        return prepared, ready_pools(prepared.experiment)
    except InfeasibleError:
        if case.text("gpu_memory_utilization"):
            raise
    roomier = ServingCase({**case.row, "gpu_memory_utilization": str(_ROOMIER)})
    prepared = experiment_of_case(roomier, open_loop_requests)
    prepared.assumed.append(f"gpu_memory_utilization {_ROOMIER}, since the run did fit")
    return prepared, ready_pools(prepared.experiment)


def _refuse_unmodelled(case: ServingCase) -> None:
    mode, quality = case.text("mode"), case.text("quality")
    if mode not in ("", "agg", "disagg"):
        raise NotModelledError(f"mode {mode} is not modelled")
    if quality in ("anomalous", "suspect"):
        raise NotModelledError(f"the source's numbers are {quality}")
    if not case.text("load_value"):
        raise NotModelledError("no load_value: the row sums up several loads")
    if "trace replay" in case.text("len_distribution"):
        raise NotModelledError("the trace that was replayed is not in the row")
    if unstated := [name for name in ("model", "engine", "gpu") if not case.text(name)] + _no_ranks(case):
        remedy = " ".join(f"--assume {name}={_EXAMPLES[name]}" for name in unstated)
        raise NotModelledError(f"not stated: {', '.join(unstated)}{IF_KNOWN}{remedy}")


def _no_ranks(case: ServingCase) -> list[str]:
    stated = is_disaggregated(case) or case.whole("tp") or case.whole("n_gpus")
    return [] if stated else ["tp"]


@functools.cache
def _known_model(path: str) -> Model:
    return load_model(path)


def _model(case: ServingCase) -> Model:
    return _known_model(model_name(case))


def _deployment(draft: _Draft) -> dict[str, Any]:
    """Return `deployment`, and for prompts and answers on different accelerators `pools` and `disaggregation`."""
    case = draft.case
    weights = quantization(case, draft.model) | _activations(draft)
    kept = kv_dtype(case, draft.model, draft.assumed)
    types = {"quantization": weights | ({"kv_cache": kept} if kept else {})}
    if not is_disaggregated(case):
        return {"deployment": _replicas(draft) | types}
    prefill, decode = sides_of(case, draft.assumed)
    return {
        "deployment": {"gpu": prefill.gpu or gpu_of(case)} | types,
        "pools": [_pool(draft, prefill, "prefill"), _pool(draft, decode, "decode")],
        "disaggregation": disaggregation_of(case, draft.assumed),
    }


def _pool(draft: _Draft, side: Side, role: str) -> dict[str, Any]:
    pool = side.as_pool(role)
    if not is_moe(draft.model):
        pool["parallelism"]["ep"] = 1
    return pool


def _replicas(draft: _Draft) -> dict[str, Any]:
    case = draft.case
    ranks = _ranks(draft)
    parallelism = {"tp": ranks.tp, "pp": case.whole("pp") or 1, "dp": ranks.dp, "ep": ranks.ep}
    if re.match(r"llama\.cpp", case.text("engine")):
        parallelism = {"pp": ranks.tp}  # it gives whole layers to each accelerator
    return {
        "gpu": gpu_of(case),
        "interconnect": _interconnect(draft, ranks.tp * ranks.dp),
        "replicas": ranks.replicas,
        "parallelism": parallelism,
    }


def _interconnect(draft: _Draft, ranks: int) -> str:
    """Return whether ranks meet on PCIe: where nobody says that cards have a bridge, they have none."""
    link = load_hardware(gpu_of(draft.case)).interconnect
    if link is None or "bridge" not in link.kind or ranks == 1:
        return "auto"
    draft.assumed.append("no NVLink bridge")
    return "pcie"


def _activations(draft: _Draft) -> dict[str, str]:
    """Return what gpt-oss multiplies in on Blackwell: InferenceX asks vLLM for 8 bits there, which are no default."""
    case, own = draft.case, draft.model.checkpoint
    is_asked = case.name.startswith("sil") and case.text("engine") == "vllm" and case.text("gpu").startswith("B")
    if not is_asked or "mxfp4" not in (own.weights, own.experts):
        return {}
    draft.assumed.append("MXFP4 experts with inputs in fp8")
    return {"activations": "fp8"}


class _Ranks(NamedTuple):
    """Tensor parallel ranks, expert parallel ranks, attention data parallel ranks, and copies of the model."""

    tp: int
    ep: int
    dp: int = 1
    replicas: int = 1


def _ranks(draft: _Draft) -> _Ranks:
    """Return how the model was spread.

    Many rows multiply `tp` or `dp` by `ep` (64 ranks on a node of 8): those whose notes name the ranks that really
    share an expert (``moe_tp``) are divided again. With attention data parallel, ranks that are also counted as `tp`
    are so for the experts only.
    """
    case = draft.case
    tp, ep, copies = case.whole("tp") or case.whole("n_gpus"), case.whole("ep") or 1, case.whole("dp") or 1
    if tp is None:
        raise NotModelledError("neither tp nor n_gpus is stated")
    if not is_moe(draft.model):
        return _Ranks(tp, 1, replicas=copies)
    if case.text("dp") == "dpa" or (copies > 1 and copies == tp == case.whole("n_gpus")):
        draft.assumed.append(f"attention data parallel over {tp} ranks")
        tp, copies = 1, tp
    ranks = copies if copies > 1 else tp
    if ep > 1 and ranks > ep and (ranks // ep) * ep == ranks and _moe_tp(case) > 1:
        ranks //= ep
        draft.assumed.append(f"{ranks * ep} ranks count expert ranks twice: {ranks}")
    ep = ep if ranks * (tp if copies > 1 else 1) % ep == 0 else 1
    return _Ranks(tp, ep, dp=ranks) if copies > 1 else _Ranks(ranks, ep)


def _moe_tp(case: ServingCase) -> int:
    _, found, rest = case.text("notes").partition("moe_tp=")
    digits = rest.partition(";")[0].strip()
    return int(digits) if found and digits.isdigit() else 1


def _engine(draft: _Draft) -> dict[str, Any]:
    case = draft.case
    kind, version, scheduler = version_of(case, draft.assumed)
    options: dict[str, Any] = {"kind": kind, "version": version, "max_model_len": _max_model_len(draft)}
    if utilization := case.number("gpu_memory_utilization"):
        options["gpu_memory_utilization"] = utilization
    # Where no prompts begin alike nothing can be found again, and looking for it would only take time.
    options["prefix_caching"] = _repeats(case) and case.text("prefix_caching") != "False"
    if blocks := case.whole("kv_blocks") or _batch_context(draft, kind):
        options["num_gpu_blocks_override"] = blocks
    if size := case.whole("kv_block_size"):
        options["block_size"] = size
    options["scheduler"] = _scheduler(draft, scheduler)
    return options


def _batch_context(draft: _Draft, kind: str) -> int | None:
    """Return the cells that a batch of llama.cpp takes: its benchmarks make the context as long as all of it."""
    if kind != "llama-cpp" or draft.case.text("load_type") != "batch":
        return None
    return (draft.case.whole("load_value") or 1) * (sum(_bounds(draft)) + 1)


def _scheduler(draft: _Draft, of_version: str) -> dict[str, Any]:
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
    if kind == "inflight" and case.name.startswith("sil") and not is_disaggregated(case) and _ranks(draft).dp > 1:
        draft.assumed.append("prompts wait for those of other attention ranks, as InferenceX sets attention_dp_config")
        flags["attention_dp_timeout_iters"] = _INFERENCEX_PATIENCE
    return {"kind": kind} | {flag: value for flag, value in flags.items() if value is not None}


def _whole_prompts(draft: _Draft) -> int | None:
    """Return a budget that holds a whole prompt beside all decodes, as whoever does not cut prompts must set it.

    InferenceX rounds prompt + users + 64 up to a multiple of 64 for TensorRT-LLM. None where the default does.
    """
    users = draft.case.whole("load_value") or 1 if draft.case.text("load_type") == "concurrency" else 1
    needed = -(-(_bounds(draft)[0] + users + 64) // 64) * 64
    if needed <= _TENSORRT_TOKENS:
        return None
    draft.assumed.append(f"max_num_batched_tokens {needed}: prompts are not cut")
    return needed


def _max_model_len(draft: _Draft) -> int:
    """Return the stated length, else one that holds what is sent: nobody serves more than fits."""
    stated, limit = draft.case.whole("max_model_len"), draft.model.max_position_embeddings
    longest_in, longest_out = _bounds(draft)
    needed = longest_in + longest_out
    if stated is not None and needed <= stated <= limit:
        return stated
    if needed > limit:
        raise NotModelledError(f"{needed} tokens are beyond the model's {limit}")
    return min(limit, max(2048, math.ceil(needed * _CONTEXT_MARGIN)))


def _bounds(draft: _Draft) -> tuple[int, int]:
    if mixed := mixed_lengths(draft.case):
        return max(part.input_tokens for part in mixed), max(part.output_tokens for part in mixed)
    lengths = _lengths(draft)
    found = []
    for side in ("input_tokens", "output_tokens"):
        drawn = lengths[side]
        found.append(int(drawn["high"] if isinstance(drawn, dict) else drawn))
    return found[0], found[1]


def _lengths(draft: _Draft) -> dict[str, Any]:
    """Return the lengths by the source's own words for how it drew them."""
    case = draft.case
    mean_in, mean_out = case.number("input_len"), case.number("output_len")
    if mean_in is None or mean_out is None or mean_in + mean_out == 0:
        raise NotModelledError("the lengths of prompts and answers are not stated")
    drawn = case.text("len_distribution")
    mean_in, mean_out = _both_sides(mean_in, mean_out, draft.model.max_position_embeddings)
    if "0.8-1.0" in drawn or "[0.8,1.0]" in drawn:
        return _uniform((0.8 * mean_in, mean_in), (0.8 * mean_out, mean_out))
    if "uniform 1..nominal" in drawn:
        return _uniform((1, mean_in), (1, mean_out))
    if "sharegpt" in drawn:
        return _lognormal(draft, mean_in, mean_out)
    spread_in, spread_out = case.number("input_len_std") or 0.0, case.number("output_len_std") or 0.0
    if "sonnet" in drawn:
        spread_in = 0.03 * mean_in / math.sqrt(3)
    if not spread_in and not spread_out and _in_lockstep(case):
        # Requests of one length that start together would end together for ever; real ones drift apart. With 5 %
        # answers of 100 tokens stay in step for ten rounds: a third too few ms a token, TTFT twice what was measured.
        draft.assumed.append("answers of one length vary by 15 %")
        return _uniform((mean_in, mean_in), (0.85 * mean_out, 1.15 * mean_out))
    return _uniform(_around(mean_in, spread_in), _around(mean_out, spread_out))


def _both_sides(prompt: float, answer: float, window: int) -> tuple[float, float]:
    """Return lengths of at least a token, for prompts without an answer and answers to nothing.

    Either may fill the model's window by itself: it then gives a token to the other.
    """
    sides = max(prompt, 1.0), max(answer, 1.0)
    if 0.0 in (prompt, answer) and sum(sides) == window + 1:
        return min(sides[0], window - 1.0), min(sides[1], window - 1.0)
    return sides


def _in_lockstep(case: ServingCase) -> bool:
    """Tell whether answers of one length would keep users in step for ever though real ones drift apart.

    Those of SGLang 0.5.1, which prefills alone, really stay in step; those of 0.5.6 do not.
    """
    users = case.number("load_value") or 1
    stays = case.text("engine") == "sglang" and case.text("engine_version").startswith(("0.4", "0.5.1"))
    return case.text("load_type") == "concurrency" and users > 1 and not stays


def _around(mean: float, deviation: float) -> tuple[float, float]:
    half = math.sqrt(3) * deviation
    return max(1.0, mean - half), mean + half


def _uniform(prompt: tuple[float, float], answer: tuple[float, float]) -> dict[str, Any]:
    bounds = {
        side: {"low": max(1, round(low)), "high": max(1, round(high))}
        for side, (low, high) in (("input_tokens", prompt), ("output_tokens", answer))
    }
    if all(bound["low"] == bound["high"] for bound in bounds.values()):
        return {"kind": "fixed"} | {side: bound["high"] for side, bound in bounds.items()}
    return {"kind": "uniform"} | bounds


def _lognormal(draft: _Draft, mean_in: float, mean_out: float) -> dict[str, Any]:
    draft.assumed.append("lengths are lognormal about the stated means")
    sides = {}
    limits = zip(("input_tokens", "output_tokens"), (mean_in, mean_out), _SHAREGPT_SIGMA, strict=True)
    for side, mean, sigma in limits:
        sides[side] = {"mean": mean, "sigma": sigma, "low": 4, "high": max(8, min(1024, round(8 * mean)))}
    return {"kind": "lognormal"} | sides


def _workload(draft: _Draft) -> dict[str, Any]:
    arrivals, count = _load(draft)
    workload: dict[str, Any] = {"arrivals": arrivals, "num_requests": count, "lengths": _lengths(draft)}
    classes = [
        {"name": f"part {number}", "share": part.share, "lengths": {"kind": "fixed"} | _lengths_of(part)}
        for number, part in enumerate(mixed_lengths(draft.case), 1)
    ]
    prefix = _shared_prefix(draft, count)
    return workload | ({"classes": classes} if classes else {}) | ({"shared_prefix": prefix} if prefix else {})


def _lengths_of(part: Part) -> dict[str, int]:
    return {"input_tokens": part.input_tokens, "output_tokens": part.output_tokens}


def _load(draft: _Draft) -> tuple[dict[str, Any], int]:
    case = draft.case
    kind, value = case.text("load_type"), case.number("load_value")
    given, cap = case.whole("num_requests"), case.whole("inflight_cap")
    if value is None:
        raise NotModelledError(f"load_value {case.text('load_value')!r} is not a number")
    if kind == "offline" or value == math.inf:
        if given is None:
            raise NotModelledError("the number of requests of an offline run is not stated")
        return {"kind": "offline"}, _count(draft, given, MOST_REQUESTS)
    if kind == "batch":
        return {"kind": "offline"}, round(value)
    if kind == "concurrency":
        users = round(value)
        loop: dict[str, Any] = {"kind": "closed_loop", "concurrency": min(users, given or users)}
        if rate := case.number("rate_cap_rps"):
            loop["request_rate"] = rate
        return loop, _count(draft, given or 10 * users, max(MOST_REQUESTS, 2 * users))
    if kind == "rate":
        shape = "constant" if "constant" in case.text("arrival") else "poisson"
        most = round(draft.open_loop_requests * max(1.0, value / _MANY_PER_S))
        count = _count(draft, given or draft.open_loop_requests, most)
        return {"kind": shape, "rate": value} | ({"max_concurrency": cap} if cap else {}), count
    raise NotModelledError(f"load type {kind!r}")


def _count(draft: _Draft, wanted: int, most: int) -> int:
    if wanted > most:
        draft.assumed.append(f"{most} of {wanted} requests are simulated")
    return min(wanted, most)


def _shared_prefix(draft: _Draft, count: int) -> dict[str, Any] | None:
    """Return what makes prompts repeat: as large a share of hits as was measured, or a prefix of stated length.

    Where 100 prompts repeat, their first sight must weigh as much as in the whole run.
    """
    case = draft.case
    share = case.number("prefix_hit_share")
    prompt = case.number("input_len") or 0.0
    if share:
        distinct = 100 if "repeat" in case.text("shared_prefix_tokens") else 1
        groups = max(1, round(distinct * count / (case.whole("num_requests") or count)))
        return {"tokens": max(1, round(share * prompt)), "groups": groups}
    if share is None and (tokens := _shared_tokens(case)):
        return {"tokens": tokens}
    return None


def _repeats(case: ServingCase) -> bool:
    """Tell whether prompts that begin alike were found again.

    Runs of the days in which vLLM 0.8 began to keep prompts do not say whether they were of it. One user waits 36 ms
    for the first token behind 466 tokens and 54 ms behind 938, which leaves no room for hits on the 200 they share.
    """
    share = case.number("prefix_hit_share")
    if case.text("engine_version").startswith("~0.8") and case.text("date") < _VLLM_KEEPS_PROMPTS:
        return False
    return bool(share) or (share is None and _shared_tokens(case) > 0)


def _shared_tokens(case: ServingCase) -> int:
    if "shared 200-token prefix" in case.text("len_distribution"):
        return 200
    return round(case.first_number("shared_prefix_tokens") or 0.0)
