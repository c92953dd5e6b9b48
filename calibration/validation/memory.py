"""Predicted against logged memory: the memory cases of ``python -m calibration validate``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from calibration.cases.memory import MemoryCase, read_cases
from calibration.cases.not_modelled import NotModelledError
from calibration.validation.summary import Errors, error_statistics, grouped
from sim.memory import MemoryPlan, plan
from sim.profiles.engine_memory import ProfiledMemory
from sim.units import GIB

__all__ = ["validate_memory"]


def validate_memory(path: Path, limit: int | None = None, where: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Predict every case from its config alone, and compare with what its engine logged.

    Two more predictions start from logged values: `kv_gib_identity` from weights, activation and non-torch memory, and
    `kv_tokens_identity` from the KV memory. The error `kv_gib_of_card` is a share of the card's memory; that of `fits`
    is 0 where the engine started as predicted, else 100.

    Returns
    -------
    dict
        ``cases``, one entry a row, and ``summary``, by group and metric; errors in per cent of the measured value.
    """
    cases = [_compare(case) for case in read_cases(path, limit, where or {})]
    return {"cases": cases, "summary": grouped(cases, _groups_of, _statistics)}


def _compare(case: MemoryCase) -> dict[str, Any]:
    entry: dict[str, Any] = {key: case.row[key] for key in ("model", "gpu", "tp", "pp", "dtype_quant", "vllm_version")}
    entry = {"case_id": case.name, **entry, "predicted": {}, "measured": case.measured}
    entry |= {"error_pct": {}, "interval": {}, "inside": {}, "skipped": None}
    try:
        made = plan(case.deployment())
    except NotModelledError as problem:
        return entry | {"skipped": str(problem)}
    measured = _with_identities(case.measured)
    predicted = made.to_json() | _identities(made, case.measured)
    return entry | {"predicted": predicted, "measured": measured, "error_pct": _errors(predicted, measured, made)}


def _with_identities(measured: dict[str, Any]) -> dict[str, Any]:
    keys = ("kv_gib", "kv_tokens")
    return measured | {f"{key}_identity": measured[key] for key in keys if key in measured}


def _identities(made: MemoryPlan, measured: Mapping[str, Any]) -> dict[str, float]:
    """Return KV memory from the other logged parts, and KV tokens from the logged KV memory."""
    found: dict[str, float] = {}
    parts = ("weights_gib", "activation_gib", "non_torch_gib")
    if all(part in measured for part in parts):
        found["kv_gib_identity"] = made.ranks[0].usable_bytes / GIB - sum(measured[part] for part in parts)
        if isinstance(made.deployment.memory, ProfiledMemory) and made.deployment.memory.cuda_graphs.subtracted:
            found["kv_gib_identity"] -= measured.get("cuda_graph_gib", made.cuda_graph_bytes / GIB)
    if "kv_gib" in measured:
        found["kv_tokens_identity"] = _with_kv_bytes(made, measured["kv_gib"] * GIB).kv_tokens
    return found


def _with_kv_bytes(made: MemoryPlan, kv_bytes: float) -> MemoryPlan:
    """Return *made* with this KV memory on the first rank; other stages differ from it as much as before."""
    shift = kv_bytes - made.kv_bytes
    return replace(made, ranks=tuple(replace(rank, kv_bytes=rank.kv_bytes + shift) for rank in made.ranks))


def _errors(predicted: Mapping[str, Any], measured: Mapping[str, Any], made: MemoryPlan) -> dict[str, float]:
    numbers = {key: value for key, value in measured.items() if key != "fits" and key in predicted and value}
    errors = {key: 100 * (predicted[key] - value) / abs(value) for key, value in numbers.items()}
    if "kv_gib" in measured:
        card_gib = made.ranks[0].visible_bytes / GIB
        errors["kv_gib_of_card"] = 100 * (predicted["kv_gib"] - measured["kv_gib"]) / card_gib
    return errors | {"fits": 100.0 * (predicted["fits"] != measured["fits"])}


def _groups_of(case: Mapping[str, Any], _metric: str) -> tuple[str, ...]:
    return ("all", f"gpu {case['gpu']}", f"vllm {case['vllm_version']}")


def _statistics(found: list[Errors]) -> dict[str, Any]:
    errors = [error for error, _ in found]
    return {**error_statistics(errors), "max": max(map(abs, errors)), "coverage": None}
