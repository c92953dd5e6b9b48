"""How long prompts and answers of a case were, by the source's own words for how it drew them."""

from __future__ import annotations

import math
from typing import Any

from calibration.cases.mixed_lengths import mixed_lengths
from calibration.cases.not_modelled import NotModelledError
from calibration.cases.serving import ServingCase
from calibration.experiment.draft import Draft

__all__ = ["bounds", "lengths"]

_SHAREGPT_SIGMA = (1.2, 1.0)
"""Standard deviation of ln(length) of prompts and answers in the ShareGPT sample of ``vllm bench serve``."""


def bounds(draft: Draft) -> tuple[int, int]:
    """Return the longest prompt and the longest answer [tokens]."""
    if mixed := mixed_lengths(draft.case):
        return max(part.input_tokens for part in mixed), max(part.output_tokens for part in mixed)
    both = lengths(draft)
    found = []
    for side in ("input_tokens", "output_tokens"):
        drawn = both[side]
        found.append(int(drawn["high"] if isinstance(drawn, dict) else drawn))
    return found[0], found[1]


def lengths(draft: Draft) -> dict[str, Any]:
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
    if not spread_in and not spread_out and not drawn:
        draft.assumed.append("all prompts and answers as long as the mean")
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


def _lognormal(draft: Draft, mean_in: float, mean_out: float) -> dict[str, Any]:
    draft.assumed.append("lengths are lognormal about the stated means")
    sides = {}
    limits = zip(("input_tokens", "output_tokens"), (mean_in, mean_out), _SHAREGPT_SIGMA, strict=True)
    for side, mean, sigma in limits:
        sides[side] = {"mean": mean, "sigma": sigma, "low": 4, "high": max(8, min(1024, round(8 * mean)))}
    return {"kind": "lognormal"} | sides
