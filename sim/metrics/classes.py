"""What came of each class of requests and of each tenant, and how fairly tenants were served."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.metrics.latency import PERCENTILES, Sample
from sim.metrics.ratio import ratio
from sim.metrics.rows import RequestRows
from sim.request import Status
from sim.slo import SLO, Judgement

__all__ = ["GroupSummary", "Groups", "good", "groups_of", "jain"]

Bools = NDArray[np.bool_]

_LATENCIES = ("ttft", "tpot", "e2el")


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """Some of the requests in numbers: those of a class or a tenant.

    *served_share* is the part of all tokens asked for, prompts and answers, that completed requests had; *speed* the
    mean answer tokens a second of a completed request, from its arrival to its last token.
    """

    name: str
    requests: int
    completed: int
    rejected: int
    failed: int
    served_share: float
    output_tok_s: float
    speed: float
    latency: dict[str, Sample]
    goodput: float | None
    objectives: dict[str, Judgement]

    def as_dict(self) -> dict[str, Any]:
        """Return it under its public keys, latencies in milliseconds."""
        return {
            "requests": self.requests,
            "completed": self.completed,
            "rejected": self.rejected,
            "failed": self.failed,
            "served_share": self.served_share,
            "output_throughput": self.output_tok_s,
            "request_goodput": self.goodput,
            "mean_speed_tok_s": self.speed,
            **{f"mean_{name}_ms": 1e3 * times.mean_s for name, times in self.latency.items()},
            **{
                f"{prefix}_{name}_ms": 1e3 * times.percentile(percent)
                for name, times in self.latency.items()
                for prefix, percent in PERCENTILES.items()
            },
            "slo": {name: judged.as_dict() for name, judged in self.objectives.items()},
        }


@dataclass(frozen=True, slots=True)
class Groups:
    """The classes that a workload names, and the tenants that there are."""

    classes: tuple[GroupSummary, ...] = ()
    tenants: tuple[GroupSummary, ...] = ()

    @property
    def fairness(self) -> dict[str, float]:
        """Jain's index over the tenants: of the share of their tokens that was served, and of the speed of answers."""
        return {
            "jain_served_share": jain(tenant.served_share for tenant in self.tenants),
            "jain_speed": jain(tenant.speed for tenant in self.tenants),
        }

    def as_dict(self) -> dict[str, Any]:
        """Return what there is under its public keys."""
        found: dict[str, Any] = {}
        if self.classes:
            found["classes"] = {group.name: group.as_dict() for group in self.classes}
        if self.tenants:
            found["tenants"] = {group.name: group.as_dict() for group in self.tenants}
            found["fairness"] = self.fairness
        return found


def groups_of(requests: RequestRows, slo: SLO | None, slos: Mapping[str, SLO | None], duration_s: float) -> Groups:
    """Summarise the classes that *slos* names, by their own objectives or else *slo*, and every tenant by *slo*."""
    classes = [_summarise(name, requests, requests.traffic_class, own or slo, duration_s) for name, own in slos.items()]
    tenants = sorted(set(requests.tenant) - {""})
    return Groups(
        tuple(classes), tuple(_summarise(name, requests, requests.tenant, slo, duration_s) for name in tenants)
    )


def good(requests: RequestRows, slo: SLO | None, slos: Mapping[str, SLO | None]) -> Bools | None:
    """Return which *requests* were answered within the objectives of their class, or else *slo*; None without any."""
    if not any(judging is not None and judging.clauses for judging in (slo, *slos.values())):
        return None
    found = requests.completed if slo is None else slo.good(requests)
    classes = np.array(list(requests.traffic_class)) if slos else None
    for name, own in slos.items():
        if own is not None:
            found = np.where(classes == name, own.good(requests), found)
    return found


def jain(shares: Iterable[float]) -> float:
    """Return the fairness index of Jain, Chiu and Hawe (DEC-TR-301, 1984): 1 if all are equal, 1/n if one has all.

    (sum x)^2 / (n sum x^2); `nan` of nothing, or if all are 0.
    """
    values = np.array([share for share in shares if not math.isnan(share)])
    squares = float(np.dot(values, values)) * len(values)
    return ratio(float(values.sum()) ** 2, squares)


def _summarise(
    name: str, requests: RequestRows, names: Sequence[str], slo: SLO | None, duration_s: float
) -> GroupSummary:
    rows = requests.where(np.array([each == name for each in names], dtype=bool))
    completed = rows.completed
    tokens = rows.input_tokens + rows.output_tokens
    done = rows.where(completed)
    latency = dict(zip(_LATENCIES, map(Sample.of, (done.ttft_s, done.tpot_s, done.e2e_s)), strict=True))
    return GroupSummary(
        name=name,
        requests=len(rows.request_id),
        completed=int(completed.sum()),
        rejected=int((rows.status == Status.REJECTED).sum()),
        failed=int((~completed & (rows.status != Status.REJECTED)).sum()),
        served_share=ratio(float(tokens[completed].sum()), float(tokens.sum())),
        output_tok_s=ratio(float(done.emitted_tokens.sum()), duration_s),
        speed=float((done.emitted_tokens / done.e2e_s).mean()) if completed.any() else math.nan,
        latency=latency,
        goodput=ratio(float(slo.good(rows).sum()), duration_s) if slo and slo.clauses else None,
        objectives=slo.met({**latency, "itl": latency["tpot"]}) if slo else {},
    )
