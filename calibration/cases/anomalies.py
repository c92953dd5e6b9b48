"""Measurements whose labels do not say what was run: validated like all others, but neither fitted nor taken as errors.

Each rule is from the rows alone, never from how far a prediction is off.
"""

from __future__ import annotations

from typing import NamedTuple

from calibration.cases.serving import ServingCase

__all__ = ["anomaly_of"]


class _Rule(NamedTuple):
    """How the names of its cases begin, their engine, what is in other cells, fewest users, and what contradicts."""

    case_id: str
    engine: str
    parts: dict[str, str]
    users: float
    reason: str


_DEEPSEEK_FP8 = {"gpu": "B200", "model": "DeepSeek", "weight_dtype": "fp8", "date": "2026-0", "tp": "8"}
_RULES = (
    _Rule("sil", "vllm", {"gpu": "H200", "model": "8B"}, 0, "128 prompts of 4,096 tokens are answered in 0.12 s: hits"),
    _Rule("sil", "vllm", {"gpu": "H100", "model": "gpt-oss"}, 256, "5 ms a token, 20 s and more to the first: a cap"),
    _Rule("sil", "trtllm", {"model": "DeepSeek"}, 0, "equal rows differ twofold: speculative decoding without a label"),
    _Rule("sil", "sglang", {"date": "2025-11"}, 0, "seconds to the first token with 4 users: warm-up in the mean"),
    _Rule("sil", "sglang", _DEEPSEEK_FP8, 0, "equal rows differ by half, the faster with later first tokens"),
    _Rule("pub", "vLLM", {"gpu": "Intel PVC"}, 0, "17 s more a batch than this card takes elsewhere: its start"),
    _Rule("pub", "TensorRT-LLM", {"model": "Qwen2-7B", "output_len": "2048"}, 0, "2,048 tokens in 0.05 s: ended early"),
)


def anomaly_of(case: ServingCase) -> str | None:
    """Return why the labels of *case* cannot be right; None where nothing speaks against them."""
    return next((rule.reason for rule in _RULES if _holds(rule, case)), None)


def _holds(rule: _Rule, case: ServingCase) -> bool:
    named = case.name.startswith(rule.case_id) and case.text("engine") == rule.engine
    told = all(part in case.text(column) for column, part in rule.parts.items())
    return named and told and (case.number("load_value") or 0) >= rule.users
