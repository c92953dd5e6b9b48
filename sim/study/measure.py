"""One run, judged in its steady part: what a search asks of it.

A run starts empty and ends with a drain, both easier than what lies between them; and a closed loop begins with all its
users at once. So the objectives count requests that arrive after the warm-up, after every user has had a turn, and not
so late that the drain helps them. A request without an answer is later than any bound.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.errors import UserError
from sim.experiment import Experiment
from sim.metrics.gaps import gaps_between
from sim.metrics.latency import PERCENTILES, Distribution, Sample
from sim.metrics.model_error import ModelError, with_model_error
from sim.metrics.pools import PoolContext
from sim.simulate import Result, simulate
from sim.slo import SLO, Clause
from sim.workload.arrivals.offline import OfflineArrivals

__all__ = ["LATENCIES", "Measured", "asked", "measured"]

Floats = NDArray[np.float64]

LATENCIES = ("ttft", "tpot", "itl", "e2el")
_FACTORS = (*LATENCIES, "throughput")
_BATCHES = 10
_SETTLED = 2.0  # starts of a closed loop are over after this many times the ramp
_SHARE_OF_STARTS = 0.5
_FEWEST = 0.4  # share of the requests that must be left to judge by


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
    window = _Window.of(result)
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
        output_tok_s=window.per_second(result.requests.emitted_tokens[window.chosen][window.answered].sum()),
        total_tok_s=window.per_second(
            (result.requests.emitted_tokens + result.requests.input_tokens)[window.chosen][window.answered].sum()
        ),
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


@dataclass(frozen=True, slots=True)
class _Window:
    """The steady part of a run: the *chosen* requests by rising arrival, and when it begins and ends [s]."""

    result: Result
    chosen: NDArray[np.int64]
    from_s: float
    to_s: float

    @classmethod
    def of(cls, result: Result) -> _Window:
        requests, arrival_s = result.requests, result.requests.arrival_s
        order = np.argsort(arrival_s, kind="stable")
        last_s = float(arrival_s[order[-1]])
        from_s = max(result.summary.steadiness.warm_up_s, _start_s(result))
        to_s = last_s - _mean(requests.e2e_s)
        chosen = order[(arrival_s[order] >= from_s) & (arrival_s[order] <= to_s)]
        if len(chosen) < _FEWEST * len(order) or to_s <= from_s:  # offline, or overloaded all the way
            return cls(result, order, float(arrival_s[order[0]]), max(last_s, result.summary.simulated_s))
        return cls(result, chosen, from_s, to_s)

    @property
    def count(self) -> int:
        return int(self.answered.sum())

    @property
    def answered(self) -> NDArray[np.bool_]:
        return self.result.requests.completed[self.chosen]

    def per_second(self, amount: float) -> float:
        return float(amount) / (self.to_s - self.from_s)

    def statistics(self) -> Iterator[tuple[str, float]]:
        """Yield mean and percentiles of the answered requests under their public keys [ms]."""
        for latency in LATENCIES:
            times = self._distribution(latency)
            yield f"mean_{latency}_ms", 1e3 * times.mean_s
            for prefix, percent in PERCENTILES.items():
                yield f"{prefix}_{latency}_ms", 1e3 * times.percentile(percent)

    def _distribution(self, latency: str) -> Distribution:
        if latency == "itl":
            return gaps_between(self.result.strides, self.from_s, self.to_s)
        return Sample.of(self._times_s(latency)[self.answered])

    @property
    def slo(self) -> SLO:
        return self.result.experiment.slo or SLO({})

    def shares(self) -> Iterator[tuple[str, float]]:
        """Yield the share that is found for each objective on one."""
        ratio = self.slo.worst_ratio(self.result.requests)[self.chosen]
        found = {"goodput": (ratio <= 1).mean(), "availability": self.answered.mean()}
        yield from ((name, float(found[name])) for name in self.slo.shares)

    def values_s(self) -> Iterator[tuple[str, float]]:
        """Yield the value of each objective by its name."""
        yield from ((clause.name, self.value_s(clause)) for clause in self.slo.clauses)
        for name, share in self.slo.shares.items():
            answered = float(self.answered.mean()) >= share
            yield name, self._goodput_ratio(share) if name == "goodput" else 0.0 if answered else math.inf

    def errors(self) -> Iterator[tuple[str, float | None]]:
        """Yield the standard error of the logarithm of each of them; None where it is not known."""
        yield from ((clause.name, self.error(clause)) for clause in self.slo.clauses)
        yield from ((name, None) for name in self.slo.shares)

    def _goodput_ratio(self, share: float) -> float:
        """Return the least factor on all bounds with which that *share* of the requests is within them."""
        ratio = np.sort(self.slo.worst_ratio(self.result.requests)[self.chosen])
        return float(ratio[max(math.ceil(share * len(ratio)) - 1, 0)])

    def value_s(self, clause: Clause) -> float:
        """Return the percentile that the *clause* asks for [s]; 0 if there is none, since answers have one token."""
        if clause.latency == "itl":
            return _percentile(self._distribution("itl"), 0, clause.percent)
        return self._percentile(clause, slice(None))

    def error(self, clause: Clause) -> float | None:
        """Return the standard error of the logarithm of `value_s`, from batches that follow each other."""
        batches_s = self._gap_batches(clause) if clause.latency == "itl" else self._batches(clause)
        if not batches_s or not all(math.isfinite(value) and value > 0 for value in batches_s):
            return None
        return float(np.std(np.log(batches_s), ddof=1)) / math.sqrt(len(batches_s))

    def _batches(self, clause: Clause) -> list[float]:
        parts = np.array_split(np.arange(len(self.chosen)), _BATCHES)
        if len(parts[-1]) * (1 - clause.percent / 100) < 1:
            return []
        return [self._percentile(clause, part) for part in parts]

    def _gap_batches(self, clause: Clause) -> list[float]:
        edges_s = np.linspace(self.from_s, self.to_s, _BATCHES + 1).tolist()
        parts = (gaps_between(self.result.strides, *pair) for pair in itertools.pairwise(edges_s))
        return [_percentile(gaps, 0, clause.percent) for gaps in parts]

    def _percentile(self, clause: Clause, part: slice | NDArray[np.int64]) -> float:
        answered = self.answered[part]
        times_s = self._times_s(clause.latency)[part][answered]
        return _percentile(Sample.of(times_s), int((~answered).sum()), clause.percent)

    def _times_s(self, latency: str) -> Floats:
        requests = self.result.requests
        times_s: Floats = {"ttft": requests.ttft_s, "tpot": requests.tpot_s, "e2el": requests.e2e_s}[latency]
        return times_s[self.chosen]


def _percentile(times: Distribution, unanswered: int, percent: float) -> float:
    """Return the *percent* percentile of *times* and as many infinite ones [s]; 0 of none."""
    if not times.count:
        return math.inf if unanswered else 0.0
    rank = (times.count + unanswered - 1) * percent / 100
    if math.ceil(rank) >= times.count:
        return math.inf if unanswered else times.percentile(100)
    return times.percentile(100 * rank / (times.count - 1)) if times.count > 1 else times.percentile(0)


def _start_s(result: Result) -> float:
    """Return when the users of a closed loop have begun and had a turn each [s]; 0 of an open one."""
    slots_s = result.beginnings.slots_open_s
    if slots_s is None:
        return 0.0
    turn = np.sort(result.requests.arrival_s)[: len(slots_s) + 1][-1]
    return max(_SETTLED * float(slots_s.max()), float(turn))


def _mean(times_s: Floats) -> float:
    known_s = times_s[~np.isnan(times_s)]
    return float(known_s.mean()) if len(known_s) else 0.0
