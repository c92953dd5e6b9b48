"""What users did in the run of a case: when they came, how many, and what their prompts shared."""

from __future__ import annotations

import math
import re
from typing import Any

from calibration.cases.mixed_lengths import Part, mixed_lengths
from calibration.cases.not_modelled import NotModelledError
from calibration.cases.serving import ServingCase
from calibration.experiment.draft import Draft
from calibration.experiment.lengths import lengths
from calibration.experiment.recorded import recorded

__all__ = ["repeats", "workload"]

_ROUNDS = 10
"""Requests of each user where a closed loop does not say how many there were."""
_MOST_REQUESTS = 2560
"""Requests simulated of a longer run: ten times 256 users, or twice as many as there are users."""
_MANY_PER_S = 100.0
"""Rate beyond which an open loop is simulated for as long as with this one: several answers long."""
_VLLM_KEEPS_PROMPTS = "2025-04"
"""Month from which on a version that is only guessed is one that does."""


def workload(draft: Draft) -> dict[str, Any]:
    """Return `workload` of the experiment."""
    if (path := recorded(draft.case)) is not None:
        draft.assumed.append(f"requests as {path.name} has them")
        return {"arrivals": {"kind": "trace", "path": str(path.resolve())} | _cap(draft.case)}
    arrivals, count = _load(draft)
    sent: dict[str, Any] = {"arrivals": arrivals, "num_requests": count, "lengths": lengths(draft)}
    classes = [
        {"name": f"part {number}", "share": part.share, "lengths": {"kind": "fixed"} | _lengths_of(part)}
        for number, part in enumerate(mixed_lengths(draft.case), 1)
    ]
    prefix = _shared_prefix(draft, count)
    return sent | ({"classes": classes} if classes else {}) | ({"shared_prefix": prefix} if prefix else {})


def _lengths_of(part: Part) -> dict[str, int]:
    return {"input_tokens": part.input_tokens, "output_tokens": part.output_tokens}


def _load(draft: Draft) -> tuple[dict[str, Any], int]:
    case = draft.case
    kind, value = case.text("load_type"), case.number("load_value")
    given = case.whole("num_requests")
    if value is None:
        raise NotModelledError(f"load_value {case.text('load_value')!r} is not a number")
    if kind == "offline" or value == math.inf:
        if given is None:
            raise NotModelledError("the number of requests of an offline run is not stated")
        return {"kind": "offline"}, _count(draft, given, _MOST_REQUESTS)
    if kind == "batch":
        return {"kind": "offline"}, round(value)
    if kind == "concurrency":
        users = round(value)
        loop: dict[str, Any] = {"kind": "closed_loop", "concurrency": min(users, given or users)}
        if rate := case.number("rate_cap_rps"):
            loop["request_rate"] = rate
        if given is None:
            draft.assumed.append(f"{_ROUNDS} requests a user")
        return loop, _count(draft, given or _ROUNDS * users, max(_MOST_REQUESTS, 2 * users))
    if kind == "rate":
        if not case.text("arrival"):
            draft.assumed.append("Poisson arrivals")
        if given is None:
            draft.assumed.append(f"{draft.open_loop_requests} requests")
        count = _count(draft, given or draft.open_loop_requests, _most(draft, value))
        return _gaps(case.text("arrival")) | {"rate": value} | _cap(case), count
    raise NotModelledError(f"load type {kind!r}")


def _gaps(arrival: str) -> dict[str, Any]:
    """Return the arrivals whose gaps are as a case says; Poisson's unless it says otherwise."""
    found = re.search(r"burstiness (\d+\.?\d*)", arrival)
    if found and (burstiness := float(found[1])) > 0:
        return {"kind": "gamma", "cv": burstiness**-0.5}
    return {"kind": "constant" if "constant" in arrival else "poisson"}


def _most(draft: Draft, rate: float) -> int:
    """Return how many requests of an open loop are simulated at most.

    One that filled all places of its client is simulated whole: the first of 10 or 20 thousand only fill them.
    """
    case = draft.case
    if case.whole("inflight_cap") and case.text("quality") == "saturated":
        return case.whole("num_requests") or draft.open_loop_requests
    return round(draft.open_loop_requests * max(1.0, rate / _MANY_PER_S))


def _cap(case: ServingCase) -> dict[str, int]:
    """Return the limit of requests in flight, if the client of *case* had one."""
    cap = case.whole("inflight_cap")
    return {"max_concurrency": cap} if cap else {}


def _count(draft: Draft, wanted: int, most: int) -> int:
    if wanted > most:
        draft.assumed.append(f"{most} of {wanted} requests are simulated")
    return min(wanted, most)


def _shared_prefix(draft: Draft, count: int) -> dict[str, Any] | None:
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


def repeats(case: ServingCase) -> bool:
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
