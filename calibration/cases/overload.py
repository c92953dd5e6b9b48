"""Whether a load was more than a deployment serves: as it was measured, and as it is simulated, by one rule.

Only an open loop can be overloaded: users of a closed one wait for their answers. It was

* where its source says so, or 5 % of the requests got no answer (clients gave them up);
* where the mean time to the first token is a tenth of the time in which requests were sent: a queue that grows for as
  long as they come (a fluid queue at 1.2 times its capacity has that mean wait);
* where fewer requests a second were answered than were sent, by 5 % and by more than chance: the last answers may run
  out after the last arrival, and counts of N Poisson arrivals spread by their root. Runs shorter than five answers do
  not tell.

Latencies of an overloaded run tell how long it lasted, and no more.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from calibration.cases.serving import ServingCase
from sim.simulate import Result

__all__ = ["LASTING", "confusion", "measured_overload", "simulated_overload"]

LASTING = ("ttft", "e2e")
"""Latencies that tell the length of an overloaded run."""
_SAID = ("overload", "saturated")
_BELOW = 0.05
_CHANCE = 1.645
_WAIT = 0.1
_ANSWERS = 5
_NAMES = {True: "overloaded", False: "kept_up", None: "unclear"}


class _Load(NamedTuple):
    """What was sent and what came back; None is unknown. Means, in seconds and per second."""

    rate: float
    requests: float | None
    served: float | None
    ttft_s: float | None
    e2e_s: float | None

    @property
    def overloaded(self) -> bool | None:
        """Whether requests came faster than they were served; None if that cannot be told."""
        lasted_s = math.inf if self.requests is None else self.requests / self.rate
        if self.ttft_s is not None and self.ttft_s > _WAIT * lasted_s:
            return True
        if self.served is None or self.e2e_s is None:
            return None
        answer_s = self.e2e_s - (self.ttft_s or 0.0)
        if lasted_s < _ANSWERS * answer_s:
            return None
        expected = self.rate if self.requests is None else self.requests / (lasted_s + answer_s)
        chance = 0.0 if self.requests is None else _CHANCE / math.sqrt(self.requests)
        return self.served < (1 - max(_BELOW, chance)) * expected


def measured_overload(case: ServingCase) -> bool | None:
    """Return whether the run of *case* was overloaded; None if it is no open loop, or does not tell."""
    rate = case.number("load_value")
    if case.text("load_type") != "rate" or not rate or rate == math.inf:
        return None
    if case.text("quality") in _SAID:
        return True
    requests, completed = case.number("num_requests"), case.number("completed")
    if requests and completed is not None and completed < (1 - _BELOW) * requests:
        return True
    return _Load(rate, requests, _served(case), _seconds(case, "ttft"), _e2e_s(case)).overloaded


def _served(case: ServingCase) -> float | None:
    tokens, length = case.number("output_tok_s"), case.number("output_len")
    return case.number("req_s") or (tokens / length if tokens and length else None)


def _seconds(case: ServingCase, latency: str) -> float | None:
    value_ms = case.number(f"{latency}_mean_ms") or case.number(f"{latency}_p50_ms")
    return None if value_ms is None else 1e-3 * value_ms


def _e2e_s(case: ServingCase) -> float | None:
    if (e2e_s := _seconds(case, "e2e")) is not None:
        return e2e_s
    ttft_s, tpot_s, length = _seconds(case, "ttft"), _seconds(case, "tpot"), case.number("output_len")
    tpot_s = tpot_s or _seconds(case, "itl")
    return None if ttft_s is None or tpot_s is None or length is None else ttft_s + tpot_s * max(length - 1, 0)


def simulated_overload(case: ServingCase, result: Result) -> bool | None:
    """Return whether the simulated run of *case* was overloaded, by the same rule or by its queue; None as above."""
    rate = case.number("load_value")
    if case.text("load_type") != "rate" or not rate or rate == math.inf:
        return None
    summary = result.summary
    if summary.steadiness.verdict == "overloaded":
        return True
    times_s = (summary.latency[name].mean_s for name in ("ttft", "e2el"))
    return _Load(rate, len(result.requests.arrival_s), summary.served.requests_per_s, *times_s).overloaded


def confusion(cases: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, dict[str, int]]]:
    """Return how many runs that were measured as overloaded, or not, are simulated as what; for all and by engine."""
    counts: dict[str, Counter[tuple[str, str]]] = {}
    for case in cases:
        judged = case.get("overload")
        if judged is None or case["skipped"] is not None or judged["measured"] is None:
            continue
        pair = (_NAMES[judged["measured"]], _NAMES[judged["simulated"]])
        for group in ("all", f"engine {case['engine']}"):
            counts.setdefault(group, Counter())[pair] += 1
    measured = (_NAMES[True], _NAMES[False])
    return {
        group: {each: {name: found[each, name] for name in _NAMES.values()} for each in measured}
        for group, found in counts.items()
    }
