"""How the model of a case was spread over accelerators, and in which types."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from calibration.cases.disaggregated import Side, disaggregation_of, is_disaggregated, sides_of
from calibration.cases.names import gpu_of, is_moe, kv_dtype, quantization, version_of
from calibration.cases.not_modelled import NotModelledError
from calibration.cases.serving import ServingCase
from calibration.experiment.draft import Draft
from sim.profiles.library import load_hardware

__all__ = ["deployment", "ranks_of"]


def deployment(draft: Draft) -> dict[str, Any]:
    """Return `deployment`, and for prompts and answers on different accelerators `pools` and `disaggregation`."""
    case = draft.case
    weights = quantization(case, draft.model) | _activations(draft)
    if not case.text("weight_dtype"):
        draft.assumed.append("weights as in the checkpoint")
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


def _pool(draft: Draft, side: Side, role: str) -> dict[str, Any]:
    pool = side.as_pool(role)
    if not is_moe(draft.model):
        pool["parallelism"]["ep"] = 1
    return pool


def _replicas(draft: Draft) -> dict[str, Any]:
    case = draft.case
    ranks = ranks_of(draft)
    parallelism = {"tp": ranks.tp, "pp": case.whole("pp") or 1, "dp": ranks.dp, "ep": ranks.ep}
    if re.match(r"llama\.cpp", case.text("engine")):
        parallelism = {"pp": ranks.tp}  # it gives whole layers to each accelerator
    return {
        "gpu": gpu_of(case),
        "interconnect": _interconnect(draft, ranks.tp * ranks.dp),
        "replicas": ranks.replicas,
        "parallelism": parallelism,
    }


def _interconnect(draft: Draft, ranks: int) -> str:
    """Return whether ranks meet on PCIe: where nobody says that cards have a bridge, they have none."""
    link = load_hardware(gpu_of(draft.case)).interconnect
    if link is None or "bridge" not in link.kind or ranks == 1:
        return "auto"
    draft.assumed.append("no NVLink bridge")
    return "pcie"


def _activations(draft: Draft) -> dict[str, str]:
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


def ranks_of(draft: Draft) -> _Ranks:
    """Return how the model was spread.

    Many rows multiply `tp` or `dp` by `ep` (64 ranks on a node of 8): those whose notes name the ranks that really
    share an expert (``moe_tp``) are divided again. With attention data parallel, ranks that are also counted as `tp`
    are so for the experts only.
    """
    case = draft.case
    tp, ep, copies = case.whole("tp") or case.whole("n_gpus"), case.whole("ep") or 1, case.whole("dp") or 1
    if tp is None:
        raise NotModelledError("neither tp nor n_gpus is stated")
    if case.whole("tp") is None and tp > 1:
        draft.assumed.append(f"tp {tp}: all accelerators of the run")
    if not is_moe(draft.model):
        return _Ranks(tp, 1, replicas=copies)
    if case.text("dp") == "dpa" or (copies > 1 and copies == tp == case.whole("n_gpus")):
        draft.assumed.append(f"attention data parallel over {tp} ranks")
        tp, copies = 1, tp
    ranks = copies if copies > 1 else tp
    if ep > 1 and ranks > ep and (ranks // ep) * ep == ranks and _moe_tp(case) > 1:
        ranks //= ep
        draft.assumed.append(f"{ranks * ep} ranks count expert ranks twice: {ranks}")
    if ep == 1 < ranks and _lacks_expert_ranks(case):
        ep = ranks
        draft.assumed.append(f"experts over all {ranks} ranks, as the benchmark's recipe spreads them")
    ep = ep if ranks * (tp if copies > 1 else 1) % ep == 0 else 1
    return _Ranks(tp, ep, dp=ranks) if copies > 1 else _Ranks(ranks, ep)


def _lacks_expert_ranks(case: ServingCase) -> bool:
    """Tell whether a row counts one expert rank though its recipe has as many as ranks.

    InferenceX' of gpt-oss with TensorRT-LLM on H200 has (``gptoss-fp4-h200-trt`` in its ``nvidia-master.yaml``). Rows
    say so since December 2025; those of November do not, though 35 pairs have the same TPOT (0.4 % in the median, at
    most 3.5).
    """
    if not case.name.startswith("sil-") or not case.text("date").startswith("2025-11"):
        return False
    engine, _, _ = version_of(case, [])
    return engine == "tensorrt-llm" and "gpt-oss" in case.text("model") and gpu_of(case) == "H200-SXM-141GB"


def _moe_tp(case: ServingCase) -> int:
    _, found, rest = case.text("notes").partition("moe_tp=")
    digits = rest.partition(";")[0].strip()
    return int(digits) if found and digits.isdigit() else 1
