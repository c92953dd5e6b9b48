"""Service level objectives: bounds on percentiles of latency, and the goodput within them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, ConfigDict, Field, RootModel, WithJsonSchema

from sim.errors import did_you_mean
from sim.metrics.latency import Distribution
from sim.metrics.rows import RequestRows
from sim.units import Seconds

__all__ = ["SLO", "Clause", "Judgement"]

_CLAUSE = re.compile(r"(ttft|tpot|itl|e2e)_p([5-9]\d(?:\.\d)?)")
_EXAMPLES = [f"{metric}_p{q}" for metric in ("ttft", "tpot", "itl", "e2e") for q in (50, 90, 95, 99)]


def _clause_name(name: str) -> str:
    if not _CLAUSE.fullmatch(name):
        raise ValueError(
            f"{name!r} is no objective: write ttft, tpot, itl or e2e, then _p50 to _p99.9, as ttft_p95"
            f"{did_you_mean(name, _EXAMPLES)}"
        )
    return name


ClauseName = Annotated[
    str, AfterValidator(_clause_name), WithJsonSchema({"type": "string", "pattern": f"^{_CLAUSE.pattern}$"})
]
Bound = Annotated[Seconds, Field(gt=0, allow_inf_nan=False)]


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


class SLO(RootModel[dict[ClauseName, Bound]]):
    """Bounds by name: the latency, then the percentile from p50 to p99.9, such as ``ttft_p95: 2 s`` [s]."""

    model_config = ConfigDict(frozen=True)
    root: dict[ClauseName, Bound] = {}

    @property
    def clauses(self) -> tuple[Clause, ...]:
        """The objectives in the order they were written."""
        return tuple(_clause(name, bound_s) for name, bound_s in self.root.items())

    def met(self, latency: Mapping[str, Distribution]) -> dict[str, Judgement]:
        """Judge every clause by the *latency* distributions of a run, which a `Summary` has.

        Answers of one token have no gaps: a clause on TPOT or ITL that finds none is met.
        """
        return {clause.name: _judged(clause, latency[clause.latency]) for clause in self.clauses}

    def good(self, requests: RequestRows) -> NDArray[np.bool_]:
        """Return which requests were completed within every clause's bound, each judged alone.

        The rows hold no single gap, so a clause on ITL is judged by the request's mean gap, its TPOT.
        """
        ttft_s, tpot_s = requests.ttft_s, requests.tpot_s
        time_s = {"ttft": ttft_s, "tpot": tpot_s, "itl": tpot_s, "e2el": requests.e2e_s}
        good = requests.completed
        for clause in self.clauses:
            good = good & ~(time_s[clause.latency] > clause.bound_s)
        return good


def _clause(name: str, bound_s: float) -> Clause:
    metric, percent = _CLAUSE.fullmatch(name).groups()  # type: ignore[union-attr]  # the validator saw to it
    return Clause(name, "e2el" if metric == "e2e" else metric, float(percent), bound_s)


def _judged(clause: Clause, latency: Distribution) -> Judgement:
    value_s = latency.percentile(clause.percent)
    vacuous = math.isnan(value_s) and clause.latency in ("tpot", "itl")
    met = vacuous or value_s <= clause.bound_s
    return Judgement(clause, value_s, latency.share_within(clause.bound_s), met)
