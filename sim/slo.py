"""Service level objectives: bounds on percentiles of latency, and shares of requests that are good or answered."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, ConfigDict, Field, RootModel, WithJsonSchema, model_validator

from sim.errors import did_you_mean
from sim.units import Seconds

__all__ = ["SHARES", "SLO", "Answers", "Clause", "Judgement", "ShareJudgement", "Times"]

Floats = NDArray[np.float64]

_CLAUSE = re.compile(r"(ttft|tpot|itl|e2e)_p([5-9]\d(?:\.\d)?)")
SHARES = ("goodput", "availability")
"""Objectives that are shares of all requests: within every bound, and answered in full."""
_EXAMPLES = [*(f"{metric}_p{q}" for metric in ("ttft", "tpot", "itl", "e2e") for q in (50, 90, 95, 99)), *SHARES]


def _clause_name(name: str) -> str:
    if not _CLAUSE.fullmatch(name) and name not in SHARES:
        raise ValueError(
            f"{name!r} is no objective: write ttft, tpot, itl or e2e, then _p50 to _p99.9, as ttft_p95; or"
            f" {' or '.join(SHARES)}, a share of the requests"
            f"{did_you_mean(name, _EXAMPLES)}"
        )
    return name


ClauseName = Annotated[
    str,
    AfterValidator(_clause_name),
    WithJsonSchema({"type": "string", "pattern": f"^({_CLAUSE.pattern}|{'|'.join(SHARES)})$"}),
]
Bound = Annotated[Seconds, Field(gt=0, allow_inf_nan=False)]


class Times(Protocol):
    """A distribution of latencies, such as `sim.metrics.latency.Distribution`."""

    def percentile(self, percent: float) -> float:
        """Return the *percent* percentile [s]."""

    def share_within(self, bound_s: float) -> float:
        """Return the share of the times that are at most *bound_s*."""


class Answers(Protocol):
    """What became of requests, one by one, such as `sim.metrics.rows.RequestRows`."""

    @property
    def completed(self) -> NDArray[np.bool_]:
        """Which were answered in full."""

    @property
    def ttft_s(self) -> Floats:
        """Time to first token [s]."""

    @property
    def tpot_s(self) -> Floats:
        """Time per output token after the first [s]."""

    @property
    def e2e_s(self) -> Floats:
        """Time to the last token [s]."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One objective: the *percent* percentile of a latency is at most *bound_s*.

    *latency* is ``ttft``, ``tpot``, ``itl`` or ``e2el``, the last as in the keys of a result.
    """

    name: str
    latency: str
    percent: float
    bound_s: float


@dataclass(frozen=True, slots=True)
class Judgement:
    """What became of a clause: percentile found [s], share of latencies within the bound, and verdict."""

    clause: Clause
    value_s: float
    share_within: float
    met: bool

    def as_dict(self) -> dict[str, float | bool]:
        """Return it under its public keys, times in milliseconds."""
        return {
            "bound_ms": self.clause.bound_s * 1e3,
            "value_ms": self.value_s * 1e3,
            "share_within": self.share_within,
            "met": self.met,
        }


@dataclass(frozen=True, slots=True)
class ShareJudgement:
    """What became of an objective on a share of all requests: at least *bound* asked for, *value* found."""

    bound: float
    value: float

    @property
    def met(self) -> bool:
        """The share is large enough."""
        return self.value >= self.bound

    def as_dict(self) -> dict[str, float | bool]:
        """Return it under its public keys."""
        return {"bound": self.bound, "value": self.value, "met": self.met}


class SLO(RootModel[dict[ClauseName, Bound]]):
    """Bounds by name: the latency, then the percentile from p50 to p99.9, such as ``ttft_p95: 2 s`` [s].

    Beside them ``goodput: 0.95``, the share of requests within every bound, each judged alone, and
    ``availability: 0.999``, the share that is answered in full.
    """

    model_config = ConfigDict(frozen=True)
    root: dict[ClauseName, Bound] = {}

    @property
    def clauses(self) -> tuple[Clause, ...]:
        """The objectives in the order they were written."""
        return tuple(_clause(name, bound_s) for name, bound_s in self.root.items() if name not in SHARES)

    @property
    def shares(self) -> dict[str, float]:
        """The objectives on shares of all requests, by name."""
        return {name: share for name, share in self.root.items() if name in SHARES}

    @model_validator(mode="after")
    def _shares_of_one(self) -> Self:
        for name, share in self.shares.items():
            if share > 1:
                raise ValueError(f"{name} is a share of the requests, at most 1, not {share:g}")
        return self

    def shares_met(self, requests: Answers) -> dict[str, ShareJudgement]:
        """Judge every objective on a share by the rows of a run."""
        found = {"goodput": self.good(requests).mean(), "availability": requests.completed.mean()}
        return {name: ShareJudgement(share, float(found[name])) for name, share in self.shares.items()}

    def worst_ratio(self, requests: Answers) -> Floats:
        """Return each request's latency over the bound of the clause that it is worst at; without answer infinite."""
        worst = np.where(requests.completed, 0.0, np.inf)
        time_s = self._times_s(requests)
        for clause in self.clauses:
            worst = np.fmax(worst, time_s[clause.latency] / clause.bound_s)
        return np.where(requests.completed, worst, np.inf)

    def _times_s(self, requests: Answers) -> dict[str, Floats]:
        """Return the latencies by which single requests are judged."""
        ttft_s, tpot_s = requests.ttft_s, requests.tpot_s
        return {"ttft": ttft_s, "tpot": tpot_s, "itl": tpot_s, "e2el": requests.e2e_s}

    def met(self, latency: Mapping[str, Times]) -> dict[str, Judgement]:
        """Judge every clause by the *latency* distributions of a run, which a `Summary` has.

        Answers of one token have no gaps: a clause on TPOT or ITL that finds none is met.
        """
        return {clause.name: _judged(clause, latency[clause.latency]) for clause in self.clauses}

    def good(self, requests: Answers) -> NDArray[np.bool_]:
        """Return which requests were completed within every clause's bound, each judged alone.

        The rows hold no single gap, so a clause on ITL is judged by the request's mean gap, its TPOT.
        """
        time_s = self._times_s(requests)
        good = requests.completed
        for clause in self.clauses:
            good = good & ~(time_s[clause.latency] > clause.bound_s)
        return good


def _clause(name: str, bound_s: float) -> Clause:
    metric, percent = _CLAUSE.fullmatch(name).groups()  # type: ignore[union-attr]  # the validator saw to it
    return Clause(name, "e2el" if metric == "e2e" else metric, float(percent), bound_s)


def _judged(clause: Clause, latency: Times) -> Judgement:
    value_s = latency.percentile(clause.percent)
    vacuous = math.isnan(value_s) and clause.latency in ("tpot", "itl")
    met = vacuous or value_s <= clause.bound_s
    return Judgement(clause, value_s, latency.share_within(clause.bound_s), met)
