"""The result of a run in numbers, under the keys of ``vllm bench serve`` and ours in the same style."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.metrics.acceptance import Acceptance, acceptance_of
from sim.metrics.bill import Bill, bill_of
from sim.metrics.binding import Binding, binding_limit
from sim.metrics.certainty import Certainty, certainty_of
from sim.metrics.classes import Groups, groups_of
from sim.metrics.context import RunContext
from sim.metrics.emissions import peak_concurrency, peak_tokens_per_s
from sim.metrics.fleet import FleetSummary, summarise_fleet
from sim.metrics.gaps import gaps_of, unexplained_gap_share
from sim.metrics.intervals import latency_intervals
from sim.metrics.kv_use import KvUse, kv_use_of
from sim.metrics.latency import Distribution, Sample, statistics_ms
from sim.metrics.pools import PoolContext, PoolSummary, busiest_link, combined_use, of_replicas, summarise_pool
from sim.metrics.ratio import ratio
from sim.metrics.rows import RequestRows, StrideRows
from sim.metrics.served import Served, served_in
from sim.metrics.steady import Steadiness, judge_steadiness
from sim.metrics.stepping import Stepping, stepping_of
from sim.metrics.time_use import TimeUse
from sim.metrics.transfers import TransferRows
from sim.request import Status
from sim.slo import Judgement, ShareJudgement

__all__ = ["Summary", "summarise"]

_GAP_TOLERANCE = 1e-6  # rounding of a long sum, and no more


@dataclass(frozen=True, slots=True)
class Summary:
    """A run in numbers. Latencies and throughputs are of completed requests, times in seconds, rates per second.

    *latency* holds the distributions by ``ttft``, ``tpot``, ``itl``, ``e2el``; *objectives* and *shares* the judgement
    of each clause of the SLO by name; *fleet* tells of replicas that come and go, if any; *transfers* what was sent
    from prefill to decode replicas, None where there are none.
    """

    served: Served
    latency: dict[str, Distribution]
    max_output_tokens_per_s: float
    max_concurrent_requests: int
    preemptions: int
    kv: KvUse
    acceptance: Acceptance
    running_mean: float
    bill: Bill
    objectives: dict[str, Judgement]
    shares: dict[str, ShareJudgement]
    binding: Binding
    time_use: TimeUse
    fleet: FleetSummary | None
    transfers: TransferRows | None
    pools: tuple[PoolSummary, ...]
    groups: Groups
    steadiness: Steadiness
    certainty: Certainty
    warnings: tuple[str, ...]
    stepping: Stepping
    simulated_s: float
    wall_s: float

    def as_dict(self) -> dict[str, Any]:
        """Return the result under its public keys, in their order; latencies in milliseconds."""
        judged: Mapping[str, Judgement | ShareJudgement] = {**self.objectives, **self.shares}
        return {
            **self.served.as_dict(),
            **statistics_ms(self.latency),
            "max_output_tokens_per_s": self.max_output_tokens_per_s,
            "max_concurrent_requests": self.max_concurrent_requests,
            "preemptions": self.preemptions,
            **self.kv.as_dict(),
            **self.acceptance.as_dict(),
            "running_mean": self.running_mean,
            **self.bill.as_dict(),
            "slo": {name: each.as_dict() for name, each in judged.items()},
            "binding_limit": self.binding.limit,
            "iteration_time": self.time_use.as_dict(),
            **(self.fleet.as_dict() if self.fleet else {}),
            **(self.transfers.as_dict(busiest_link(self.pools)) if self.transfers else {}),
            **({"pools": [pool.as_dict() for pool in self.pools]} if len(self.pools) > 1 else {}),
            **self.groups.as_dict(),
            "steady_state": self.steadiness.verdict,
            "warm_up_s": self.steadiness.warm_up_s,
            **self.certainty.as_dict(),
            "warnings": list(self.warnings),
            **self.stepping.as_dict(),
            "simulated_s": self.simulated_s,
            "wall_s": self.wall_s,
        }

    @property
    def uncertain(self) -> dict[str, float]:
        """What intervals are made for, by public key: latencies [ms] and rates."""
        return _uncertain(self.latency, self.served)


def summarise(
    requests: RequestRows, strides: StrideRows, context: RunContext, transfers: TransferRows | None = None
) -> Summary:
    """Compute every metric of a run from its rows; *transfers* count where pools have a link between them."""
    began_s, end_s = _span(requests, strides, context.pools)
    duration_s = end_s - began_s
    contexts = [_since(began_s, pool) for pool in context.pools]
    transfers = transfers if any(pool.link_bytes_per_s for pool in contexts) else None
    pools = tuple(summarise_pool(pool, requests, strides, duration_s, transfers) for pool in contexts)
    served = served_in(duration_s, requests, context.slo, context.class_slos)
    latency = _latency(requests, strides)
    steadiness = judge_steadiness(requests)
    certainty = _certainty(requests, strides, context, latency, served, steadiness)
    time_use = combined_use(contexts, strides)
    serving_s = duration_s * sum(pool.serving(duration_s) for pool in contexts)
    slo = context.slo
    return Summary(
        served=served,
        latency=latency,
        max_output_tokens_per_s=peak_tokens_per_s(requests, strides),
        max_concurrent_requests=peak_concurrency(requests),
        preemptions=int(requests.preemptions.sum()),
        kv=kv_use_of(contexts, requests, strides, duration_s),
        acceptance=acceptance_of(strides, of_replicas(contexts, lambda pool: pool.draft_tokens)[strides.replica]),
        running_mean=ratio(float(np.dot(strides.running, strides.duration_s)), duration_s),
        bill=bill_of(pools, served),
        objectives=slo.met(latency) if slo else {},
        shares=slo.shares_met(requests) if slo else {},
        binding=binding_limit(strides, serving_s, time_use.by_resource, busiest_link(pools)),
        time_use=time_use,
        fleet=summarise_fleet(context.pools, requests, slo.good(requests) if slo else requests.completed),
        transfers=transfers,
        pools=pools,
        groups=groups_of(requests, slo, context.class_slos, duration_s),
        steadiness=steadiness,
        certainty=certainty,
        warnings=tuple(_warnings(context, requests, latency["itl"], steadiness, certainty)),
        stepping=stepping_of(contexts, strides),
        simulated_s=end_s,
        wall_s=context.wall_s,
    )


def _span(requests: RequestRows, strides: StrideRows, pools: Sequence[PoolContext]) -> tuple[float, float]:
    """Return when the first request came and the last thing happened [s].

    The last may be that a replica was let go, after a request that waited for one in vain.
    """
    closed_s = [_last(pool.lives.to_s) for pool in pools if pool.lives is not None]
    end_s = max(_last(requests.last_token_s), _last(strides.start_s + strides.duration_s), *closed_s)
    return float(requests.arrival_s.min(initial=end_s)), end_s


def _last(times_s: NDArray[np.float64]) -> float:
    return float(times_s[~np.isnan(times_s)].max(initial=0.0))


def _since(at_s: float, pool: PoolContext) -> PoolContext:
    """Return *pool* without what its replicas did before a run began at *at_s* [s]."""
    return pool if pool.lives is None else replace(pool, lives=pool.lives.since(at_s))


def _latency(requests: RequestRows, strides: StrideRows) -> dict[str, Distribution]:
    completed = requests.completed
    return {
        "ttft": Sample.of(requests.ttft_s[completed]),
        "tpot": Sample.of(requests.tpot_s[completed]),
        "itl": gaps_of(strides),
        "e2el": Sample.of(requests.e2e_s[completed]),
    }


def _uncertain(latency: Mapping[str, Distribution], served: Served) -> dict[str, float]:
    rates = {"request_throughput": served.requests_per_s, "output_throughput": served.output_tok_s}
    return statistics_ms(latency) | rates


def _certainty(
    requests: RequestRows,
    strides: StrideRows,
    context: RunContext,
    latency: Mapping[str, Distribution],
    served: Served,
    steadiness: Steadiness,
) -> Certainty:
    """Other requests of the same traffic would do alike only where the run was steady."""
    steady = steadiness.verdict == "steady"
    sampling = latency_intervals(requests, strides, latency, steadiness.warm_up_s) if steady else {}
    return certainty_of(_uncertain(latency, served), sampling, context.model_error, context.spread)


def _warnings(
    context: RunContext, requests: RequestRows, gaps: Distribution, steadiness: Steadiness, certainty: Certainty
) -> Iterator[str]:
    """Say what a reader of the numbers has to know."""
    yield from context.warnings
    yield from filter(None, (_without_answer(requests, status) for status in (Status.REJECTED, Status.FAILED)))
    if steadiness.verdict != "steady":
        yield steadiness.statement
    if (share := unexplained_gap_share(requests, gaps)) > _GAP_TOLERANCE:
        yield f"gaps between tokens miss {share:.2%} of the time from first to last; ITL is off"
    if certainty.statement:
        yield certainty.statement


def _without_answer(requests: RequestRows, status: Status) -> str:
    """Count requests of one *status* with the commonest reason, or return an empty text."""
    reasons = Counter(requests.reasons[index] for index in np.flatnonzero(requests.status == status).tolist())
    if not reasons:
        return ""
    commonest, _ = reasons.most_common(1)[0]
    count = f"{reasons.total():,} of {len(requests.reasons):,} requests {status.name.lower()}"
    return f"{count}: {commonest}" if commonest else count
