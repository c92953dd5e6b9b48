"""One run, judged in its steady part: what a search asks of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sim.errors import UserError
from sim.experiment import Experiment
from sim.metrics.model_error import ModelError, with_model_error
from sim.metrics.pools import PoolContext
from sim.simulate import Result, simulate
from sim.slo import SLO, Clause
from sim.study.window import LATENCIES, Window
from sim.workload.arrivals.offline import OfflineArrivals

__all__ = ["Measured", "asked", "measured"]

_FACTORS = (*LATENCIES, "throughput")
_SHARE_OF_STARTS = 0.5


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run came to.

    Attributes
    ----------
    values_s
        Percentile that each clause of the SLO asks for, by the clause's name; infinite where answers are missing [s].
        Of ``goodput`` the factor by which all bounds would have to be longer for the share asked for, and of
        ``availability`` 0 or infinity; both are kept where they are at most 1.
    errors
        Standard error of the logarithm of each of them, from ten batches; None where these are too small to tell.
    factors
        Errors of the model, by latency and ``throughput``: nine in ten measured runs were within prediction / f and
        times f. Empty: the cost model is the user's own line.
    statement
        What the factors were found from.
    overloaded, settled
        The queue grows to the end; the run was long enough to tell.
    shares
        Found for the objectives ``goodput`` and ``availability``, where they are asked for.
    usd_per_hour
        Rent of all accelerators; None: no price is known.
    requests_per_s, output_tok_s, total_tok_s
        Answered, in the steady part.
    figures
        Public keys of a result, such as ``median_ttft_ms``: latencies of the steady part, the rest of the whole run.
        ``intervals`` are 90 %, from the errors of the model.
    """

    values_s: Mapping[str, float]
    errors: Mapping[str, float | None]
    factors: Mapping[str, float]
    statement: str
    overloaded: bool
    settled: bool
    num_gpus: int
    shares: Mapping[str, float]
    usd_per_hour: float | None
    requests_per_s: float
    output_tok_s: float
    total_tok_s: float
    binding_limit: str
    binding_sentence: str
    idle_share: float
    figures: Mapping[str, Any]

    def interval_s(self, clause: Clause) -> tuple[float, float]:
        """Return the 90 % interval of a *clause*'s percentile: errors of the model, and noise [s]."""
        error = math.log(self.factors.get(clause.latency, 1.0))
        spread = math.exp(math.hypot(error, _TWO_SIDED * (self.errors[clause.name] or 0.0)))
        return self.values_s[clause.name] / spread, self.values_s[clause.name] * spread

    def as_dict(self, slo: SLO) -> dict[str, Any]:
        """Return what a reader of an answer asks of the run, as plain data."""
        return {
            "request_throughput": self.requests_per_s,
            "output_throughput": self.output_tok_s,
            "output_tok_s_per_gpu": self.output_tok_s / self.num_gpus,
            "slo_values_ms": {clause.name: 1e3 * self.values_s[clause.name] for clause in slo.clauses},
            "slo_shares": dict(self.shares),
            "slo_intervals_ms": {
                clause.name: [1e3 * end_s for end_s in self.interval_s(clause)] for clause in slo.clauses
            },
            "binding_limit": self.binding_limit,
            "binding_sentence": self.binding_sentence,
            "statement": self.statement,
            **self.figures,
        }

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data, infinite values as None."""
        plain = asdict(self)
        plain["values_s"] = {name: value if math.isfinite(value) else None for name, value in self.values_s.items()}
        return plain

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Measured:
        """Return what `to_json` made *plain* data of."""
        values_s = {name: math.inf if value is None else value for name, value in plain["values_s"].items()}
        return cls(**{**plain, "values_s": values_s})


_TWO_SIDED = 1.6449  # 95 % quantile of the normal distribution
_KEPT = (
    *("kv_utilization_peak", "kv_utilization_mean", "running_mean", "max_concurrent_requests", "preemptions"),
    *("prefix_hit_rate", "completed", "failed", "rejected", "energy_j_per_output_tok", "engine_iterations"),
    *("gpu_power_w", "facility_power_w"),
)


def measured(experiment: Experiment) -> Measured:
    """Run *experiment* and judge its steady part.

    Raises
    ------
    UserError, InfeasibleError
        As `simulate` does.
    """
    result = simulate(experiment)
    window = Window.of(result)
    if not window.count:
        raise UserError("no request was answered", file=experiment.document.file)
    error = result.context.model_error
    summary, public = result.summary, result.summary.as_dict()
    factors = {} if error is None else error.factors
    factors = {name: factors.get(name, max(factors.values())) for name in _FACTORS} if factors else {}
    latencies = dict(window.statistics())
    return Measured(
        values_s=dict(window.values_s()),
        errors=dict(window.errors()),
        factors=factors,
        statement="" if error is None else error.statement,
        overloaded=summary.steadiness.verdict == "overloaded",
        num_gpus=sum(pool.num_gpus for pool in result.context.pools),
        shares=dict(window.shares()),
        usd_per_hour=_rent(result.context.pools),
        settled=_is_settled(result),
        requests_per_s=window.per_second(window.answered.sum()),
        output_tok_s=window.per_second(window.output_tokens()),
        total_tok_s=window.per_second(window.output_tokens() + window.prompt_tokens()),
        binding_limit=summary.binding.limit,
        binding_sentence=summary.binding.sentence,
        idle_share=summary.binding.idle_share,
        figures={
            **{name: _plain(value) for name, value in latencies.items()},
            **{name: _plain(public[name]) for name in _KEPT},
            "intervals": with_model_error(ModelError(factors, ""), latencies, {}),
        },
    )


def _is_settled(result: Result) -> bool:
    """Tell whether a run shows its load for long enough.

    It does if it is steady, and if what begins by itself, single requests and first turns of sessions, comes in all
    the first half at least: many sessions that all begin at once have no rate.
    """
    verdict, beginnings = result.summary.steadiness.verdict, result.beginnings
    if isinstance(result.experiment.workload.arrivals, OfflineArrivals):
        return verdict == "offline"
    if verdict != "steady" or beginnings.slots_open_s is not None:
        return verdict == "steady"
    return float(np.ptp(beginnings.begun_s)) >= _SHARE_OF_STARTS * result.summary.served.duration_s


def asked(slo: SLO) -> dict[str, Any]:
    """Return the objectives as plain data: bounds by clause [ms], and least shares of the requests."""
    bounds_ms = {clause.name: 1e3 * clause.bound_s for clause in slo.clauses}
    return {"slo_ms": bounds_ms, "slo_least_shares": slo.shares}


def _rent(pools: Sequence[PoolContext]) -> float | None:
    rents = [pool.num_gpus * pool.gpu_price.usd_per_hour for pool in pools if pool.gpu_price is not None]
    return sum(rents) if len(rents) == len(pools) else None


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
