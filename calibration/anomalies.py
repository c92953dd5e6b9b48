"""Measurements whose labels do not say what was run: validated like all others, but neither fitted nor taken as errors.

Each rule is from the rows alone, never from how far a prediction is off.
"""

from __future__ import annotations

from typing import NamedTuple

from calibration.serving_cases import ServingCase

__all__ = ["anomaly_of"]


class _Rule(NamedTuple):
    """Engine, parts of accelerator, model and date, fewest users, and what contradicts the labels."""

    engine: str
    gpu: str
    model: str
    date: str
    users: float
    reason: str


_RULES = (
    _Rule("vllm", "H200", "8B", "", 0, "128 prompts of 4,096 tokens are answered within 0.12 s: prefix hits"),
    _Rule("vllm", "H100", "gpt-oss", "", 256, "5 ms a token after 20 to 300 s to the first one: a cap on running ones"),
    _Rule("trtllm", "", "DeepSeek", "", 0, "equal rows differ twofold: speculative decoding without a label"),
    _Rule("sglang", "", "", "2025-11", 0, "seconds to the first token with 4 users: warm-up in the mean"),
)


def anomaly_of(case: ServingCase) -> str | None:
    """Return why the labels of *case* cannot be right; None where nothing speaks against them."""
    if not case.name.startswith("sil"):
        return None
    return next((rule.reason for rule in _RULES if _holds(rule, case)), None)


def _holds(rule: _Rule, case: ServingCase) -> bool:
    parts = ("gpu", rule.gpu), ("model", rule.model), ("date", rule.date)
    named = case.text("engine") == rule.engine and all(part in case.text(column) for column, part in parts)
    return named and (case.number("load_value") or 0) >= rule.users
