"""The result of a run in numbers, under the keys of ``vllm bench serve`` and ours in the same style."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.metrics.binding import Binding, binding_limit
from sim.metrics.classes import Groups, good, groups_of
from sim.metrics.emissions import peak_concurrency, peak_tokens_per_s
from sim.metrics.fleet import FleetSummary, summarise_fleet
from sim.metrics.gaps import GapHistogram, gaps_of, unexplained_gap_share
from sim.metrics.intervals import SAMPLING_ONLY, Interval, latency_intervals
from sim.metrics.latency import PERCENTILES, Distribution, Sample
from sim.metrics.model_error import ModelError, Spread, with_draws, with_model_error
from sim.metrics.pools import PoolContext, PoolSummary, combined_use, of_replicas, summarise_pool
from sim.metrics.rows import RequestRows, StrideRows
from sim.metrics.slo import SLO, Judgement, ShareJudgement
from sim.metrics.steady import Steadiness, judge_steadiness
from sim.metrics.time_use import TimeUse
from sim.metrics.transfers import TransferRows
from sim.profiles.prices import GpuPrice
from sim.request import Status
from sim.units import GB

__all__ = ["RunContext", "Summary", "summarise"]

_GAP_TOLERANCE = 1e-6  # rounding of a long sum, and no more


@dataclass(frozen=True, slots=True)
class RunContext:
    """What the rows of a run do not tell.

    Attributes
    ----------
    pools
        In the order of their replicas' numbers.
    class_slos
        The classes of requests that the workload names, with their own objectives if they have any.
    wall_s
        How long the simulation took [s].
    warnings
        What was found on the way to the run.
    model_error
        How far predictions of such runs were off; None: not known.
    spread
        What draws of the constants say; None: none were made.
    """

    pools: tuple[PoolContext, ...]
    slo: SLO | None = None
    class_slos: Mapping[str, SLO | None] = field(default_factory=dict)
    wall_s: float = math.nan
    warnings: tuple[str, ...] = ()
    model_error: ModelError | None = None
    spread: Spread | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """A run in numbers. Counts and throughputs are of completed requests, times in seconds, rates per second.

    *latency* holds the distributions by ``ttft``, ``tpot``, ``itl``, ``e2el``; *objectives* the judgement of each
    clause of the SLO by name; *num_gpus* are paid for on average; *fleet* tells of replicas that come and go, if any;
    *gpu_power_w* is of a board on average, *facility_power_w* of the deployment with servers and cooling; *price* is of
    one GPU, where all have the same; *intervals* the 90 % confidence intervals by key, in the unit of the key;
    *draws* says what the intervals are made of where constants were drawn; *transfers* what was sent from prefill to
    decode replicas, None where there are none. `None` is unknown.
    """

    completed: int
    failed: int
    rejected: int
    duration_s: float
    input_tokens: int
    output_tokens: int
    request_goodput: float | None
    latency: dict[str, Distribution]
    max_output_tokens_per_s: float
    max_concurrent_requests: int
    preemptions: int
    prefix_hit_rate: float
    kv_utilization_mean: float
    kv_utilization_peak: float
    kv_waste: float
    acceptance_length: float | None
    acceptance_rate: float | None
    running_mean: float
    num_gpus: float
    fleet: FleetSummary | None
    time_use: TimeUse
    pools: tuple[PoolSummary, ...]
    groups: Groups
    cost_usd_per_mtok_output: float | None
    energy_j_per_output_tok: float | None
    gpu_power_w: float | None
    facility_power_w: float | None
    price: GpuPrice | None
    binding: Binding
    steadiness: Steadiness
    objectives: dict[str, Judgement]
    shares: dict[str, ShareJudgement]
    intervals: dict[str, Interval]
    warnings: tuple[str, ...]
    engine_iterations: int
    iterations_in_strides: int
    single_steps: str
    simulated_s: float
    wall_s: float
    transfers: TransferRows | None = None
    draws: dict[str, Any] | None = None

    def per_second(self, amount: float) -> float:
        """Return *amount* over the duration of the run, `nan` for a run of no length."""
        return amount / self.duration_s if self.duration_s else math.nan

    def as_dict(self) -> dict[str, Any]:
        """Return the result under its public keys, in their order; latencies in milliseconds."""
        output_tok_s = self.per_second(self.output_tokens)
        total_tok_s = self.per_second(self.input_tokens + self.output_tokens)
        return {
            "completed": self.completed,
            "failed": self.failed,
            "rejected": self.rejected,
            "duration": self.duration_s,
            "total_input_tokens": self.input_tokens,
            "total_output_tokens": self.output_tokens,
            "request_throughput": self.per_second(self.completed),
            "request_goodput": self.request_goodput,
            "output_throughput": output_tok_s,
            "total_token_throughput": total_tok_s,
            **self._statistics(),
            "max_output_tokens_per_s": self.max_output_tokens_per_s,
            "max_concurrent_requests": self.max_concurrent_requests,
            "preemptions": self.preemptions,
            "prefix_hit_rate": self.prefix_hit_rate,
            "kv_utilization_mean": self.kv_utilization_mean,
            "kv_utilization_peak": self.kv_utilization_peak,
            "kv_waste": self.kv_waste,
            "spec_decode_acceptance_length": self.acceptance_length,
            "spec_decode_acceptance_rate": self.acceptance_rate,
            "running_mean": self.running_mean,
            "output_tok_s_per_gpu": _ratio(output_tok_s, self.num_gpus),
            "total_tok_s_per_gpu": _ratio(total_tok_s, self.num_gpus),
            "cost_usd_per_mtok_output": self.cost_usd_per_mtok_output,
            "energy_j_per_output_tok": self.energy_j_per_output_tok,
            "gpu_power_w": self.gpu_power_w,
            "facility_power_w": self.facility_power_w,
            "price": None if self.price is None else self.price.as_dict(),
            "slo": {
                **{name: judged.as_dict() for name, judged in self.objectives.items()},
                **{name: judged.as_dict() for name, judged in self.shares.items()},
            },
            "binding_limit": self.binding.limit,
            "iteration_time": self.time_use.as_dict(),
            **(self.fleet.as_dict() if self.fleet else {}),
            **self._transfers(),
            **({"pools": [pool.as_dict() for pool in self.pools]} if len(self.pools) > 1 else {}),
            **self.groups.as_dict(),
            "steady_state": self.steadiness.verdict,
            "warm_up_s": self.steadiness.warm_up_s,
            "intervals": {key: list(interval) for key, interval in self.intervals.items()},
            **({} if self.draws is None else {"draws": self.draws}),
            "warnings": list(self.warnings),
            "engine_iterations": self.engine_iterations,
            "iterations_in_strides": self.iterations_in_strides,
            "single_steps": self.single_steps or None,
            "simulated_s": self.simulated_s,
            "wall_s": self.wall_s,
        }

    @property
    def uncertain(self) -> dict[str, float]:
        """What intervals are made for, by public key: latencies [ms] and rates."""
        return _uncertain(self.latency, self.per_second(self.completed), self.per_second(self.output_tokens))

    def _statistics(self) -> dict[str, float]:
        return _in_ms(self.latency)

    @property
    def kv_link_utilization(self) -> float:
        """The largest share that the links of a pool had of what they can move."""
        return _busiest_link(self.pools)

    def _transfers(self) -> dict[str, float]:
        if self.transfers is None:
            return {}
        return {
            "kv_transfers": len(self.transfers.request),
            **_in_ms({"kv_transfer": self.transfers.times}),
            "mean_kv_transfer_wait_ms": 1e3 * self.transfers.mean_wait_s,
            "kv_transfer_gb": self.transfers.total_bytes / GB,
            "kv_link_utilization": self.kv_link_utilization,
        }


def summarise(
    requests: RequestRows, strides: StrideRows, context: RunContext, transfers: TransferRows | None = None
) -> Summary:
    """Compute every metric of a run from its rows; *transfers* count where pools have a link between them."""
    ends_s = _last(requests.last_token_s), _last(strides.start_s + strides.duration_s)
    end_s = max(*ends_s, *map(_closed_s, context.pools))
    began_s = float(requests.arrival_s.min(initial=end_s))
    duration_s = end_s - began_s
    pools = [_since(began_s, pool) for pool in context.pools]
    completed = requests.completed
    output_tokens = int(requests.emitted_tokens[completed].sum())
    gaps = gaps_of(strides)
    latency: dict[str, Distribution] = {
        "ttft": Sample.of(requests.ttft_s[completed]),
        "tpot": Sample.of(requests.tpot_s[completed]),
        "itl": gaps,
        "e2el": Sample.of(requests.e2e_s[completed]),
    }
    steadiness = judge_steadiness(requests)
    steady = steadiness.verdict == "steady"
    intervals = latency_intervals(requests, strides, latency, steadiness.warm_up_s) if steady else {}
    error, spread = context.model_error, context.spread
    values = _uncertain(latency, _ratio(int(completed.sum()), duration_s), _ratio(output_tokens, duration_s))
    if spread is not None:
        intervals = with_draws(spread, error, values)
    elif error is not None:
        intervals = with_model_error(error, values, intervals)
    time_use = combined_use(pools, strides)
    kv_blocks = of_replicas(pools, lambda pool: pool.kv_blocks)
    block_size = of_replicas(pools, lambda pool: pool.block_size)[strides.replica]
    kv_block_s = float(np.dot(_mean_blocks(strides, block_size), strides.duration_s))
    transfers = transfers if any(pool.link_bytes_per_s for pool in pools) else None
    of_pools = tuple(summarise_pool(pool, requests, strides, duration_s, transfers) for pool in pools)
    num_gpus = sum(pool.num_gpus for pool in of_pools)
    usd_per_hour = _together([pool.usd_per_hour for pool in of_pools])
    power_w = _together([pool.power_w for pool in of_pools])
    serving = [pool.serving(duration_s) for pool in pools]
    good = context.slo.good(requests) if context.slo else requests.completed
    kv_room = sum(pool.kv_blocks * number for pool, number in zip(pools, serving, strict=True))
    return Summary(
        completed=int(completed.sum()),
        failed=int((~completed & (requests.status != Status.REJECTED)).sum()),
        rejected=int((requests.status == Status.REJECTED).sum()),
        duration_s=duration_s,
        input_tokens=int(requests.input_tokens[completed].sum()),
        output_tokens=output_tokens,
        request_goodput=_goodput(requests, context, duration_s),
        latency=latency,
        max_output_tokens_per_s=peak_tokens_per_s(requests, strides),
        max_concurrent_requests=peak_concurrency(requests),
        preemptions=int(requests.preemptions.sum()),
        prefix_hit_rate=_prefix_hit_rate(requests),
        kv_utilization_mean=_ratio(kv_block_s, duration_s * kv_room),
        kv_utilization_peak=_peak(strides, kv_blocks),
        kv_waste=_kv_waste(strides, block_size),
        **_accepted(strides, of_replicas(pools, lambda pool: pool.draft_tokens)[strides.replica]),
        running_mean=_ratio(float(np.dot(strides.running, strides.duration_s)), duration_s),
        num_gpus=num_gpus,
        fleet=summarise_fleet(context.pools, requests, good),
        cost_usd_per_mtok_output=_per_token(usd_per_hour, duration_s / 3600, output_tokens / 1e6),
        energy_j_per_output_tok=_per_token(power_w, duration_s, output_tokens),
        binding=binding_limit(
            strides, duration_s * sum(serving), time_use.by_resource, _busiest_link(of_pools)
        ),
        time_use=time_use,
        pools=of_pools,
        groups=groups_of(requests, context.slo, context.class_slos, duration_s),
        gpu_power_w=None if power_w is None else _ratio(power_w, num_gpus),
        facility_power_w=_together([pool.facility_power_w for pool in of_pools]),
        price=_common([pool.price for pool in of_pools]),
        steadiness=steadiness,
        objectives=context.slo.met(latency) if context.slo else {},
        shares=context.slo.shares_met(requests) if context.slo else {},
        intervals=intervals,
        warnings=(
            *context.warnings,
            *_warnings(requests, gaps, steadiness),
            *_meaning_of(intervals, error, spread),
        ),
        engine_iterations=int(strides.iterations.sum()),
        iterations_in_strides=int(strides.iterations[strides.together > 1].sum()),
        single_steps="; ".join(dict.fromkeys(pool.single_steps for pool in pools if pool.single_steps)),
        simulated_s=end_s,
        wall_s=context.wall_s,
        transfers=transfers,
        draws=None if spread is None else {"count": spread.draws, "factors": spread.parts(error)},
    )


def _busiest_link(pools: Sequence[PoolSummary]) -> float:
    return max((pool.link_utilization or 0.0 for pool in pools), default=0.0)


def _in_ms(latency: Mapping[str, Distribution]) -> dict[str, float]:
    found = (pair for name, times in latency.items() for pair in _statistics(name, times))
    return {key: 1e3 * time_s for key, time_s in found}


def _uncertain(latency: Mapping[str, Distribution], requests_per_s: float, tokens_per_s: float) -> dict[str, float]:
    rates = {"request_throughput": requests_per_s, "output_throughput": tokens_per_s}
    return _in_ms(latency) | rates


def _meaning_of(
    intervals: Mapping[str, Interval], error: ModelError | None, spread: Spread | None
) -> Iterator[str]:
    """Say what the intervals hold, if there are any."""
    if spread is not None:
        yield spread.statement(error)
    elif intervals:
        yield SAMPLING_ONLY if error is None else error.statement


def _statistics(name: str, times: Distribution) -> Iterator[tuple[str, float]]:
    yield f"mean_{name}_ms", times.mean_s
    for prefix, percent in PERCENTILES.items():
        yield f"{prefix}_{name}_ms", times.percentile(percent)
    yield f"std_{name}_ms", times.std_s


def _last(times_s: NDArray[np.float64]) -> float:
    return float(times_s[~np.isnan(times_s)].max(initial=0.0))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def _peak(strides: StrideRows, kv_blocks: NDArray[np.float64]) -> float:
    """Return the largest share in use of any replica's pool."""
    return float((strides.kv_blocks / kv_blocks[strides.replica]).max(initial=0.0)) if kv_blocks.all() else math.nan


def _together(amounts: Sequence[float | None]) -> float | None:
    """Add up what is known of every pool; None if it is not known of one."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None


def _common(prices: Sequence[GpuPrice | None]) -> GpuPrice | None:
    """Return the price of the accelerators of all pools; None if they differ."""
    return prices[0] if all(price == prices[0] for price in prices) else None


def _mean_blocks(strides: StrideRows, block_size: NDArray[np.float64]) -> NDArray[np.float64]:
    """Average the blocks in use over each stride: each iteration before the last held *decodes* tokens less."""
    return strides.kv_blocks - strides.decodes * (strides.iterations - 1) / (2 * block_size)


def _kv_waste(strides: StrideRows, block_size: NDArray[np.float64]) -> float:
    """Return the share of the held blocks' room that holds no token, over the time of iterations that only decode.

    Blocks that several requests share count once and their tokens for each of them, which can hide all of it.
    """
    alone = (strides.decodes > 0) & (strides.chunks == 0) & np.isfinite(block_size)
    if not alone.any():
        return math.nan
    tokens = strides.decode_context_tokens + strides.decodes * (strides.iterations - 1) / 2
    blocks = _mean_blocks(strides, block_size)[alone]
    held = float(np.dot(blocks * block_size[alone], strides.duration_s[alone]))
    return max(1 - _ratio(float(np.dot(tokens[alone], strides.duration_s[alone])), held), 0.0)


def _accepted(strides: StrideRows, draft_tokens: NDArray[np.float64]) -> dict[str, float | None]:
    """Return tokens a verification, and accepted tokens a drafted one [%], as `vllm bench serve` prints them."""
    drafts = strides.decodes * strides.iterations * (draft_tokens > 0)
    if not drafts.any():
        return {"acceptance_length": None, "acceptance_rate": None}
    emitted, verified = int(strides.emitted[draft_tokens > 0].sum()), int(drafts.sum())
    return {
        "acceptance_length": emitted / verified,
        "acceptance_rate": 100 * (emitted - verified) / float(np.dot(drafts, draft_tokens)),
    }


def _since(at_s: float, pool: PoolContext) -> PoolContext:
    """Return *pool* without what its replicas did before a run began at *at_s* [s]."""
    return pool if pool.lives is None else replace(pool, lives=pool.lives.since(at_s))


def _closed_s(pool: PoolContext) -> float:
    """Return when the last of all replicas was let go, which may be after a request that waited for one in vain [s]."""
    return 0.0 if pool.lives is None else _last(pool.lives.to_s)


def _goodput(requests: RequestRows, context: RunContext, duration_s: float) -> float | None:
    """Completed requests within every bound of their objectives, per second; unknown without any."""
    within = good(requests, context.slo, context.class_slos)
    return None if within is None else _ratio(int(within.sum()), duration_s)


def _prefix_hit_rate(requests: RequestRows) -> float:
    """Divide cached tokens by the prompt tokens looked up; a preempted request looks its own up again."""
    admitted = ~np.isnan(requests.admitted_s)
    looked_up = (requests.input_tokens * (1 + requests.preemptions))[admitted].sum()
    return _ratio(float(requests.cached_tokens.sum()), float(looked_up))


def _per_token(rate: float | None, amount: float, tokens: float) -> float | None:
    return None if rate is None or not tokens else rate * amount / tokens


def _warnings(requests: RequestRows, gaps: GapHistogram, steadiness: Steadiness) -> list[str]:
    """Say what a reader of the numbers has to know."""
    warnings = [_without_answer(requests, status) for status in ("rejected", "failed")]
    if steadiness.verdict != "steady":
        warnings.append(steadiness.statement)
    if (share := unexplained_gap_share(requests, gaps)) > _GAP_TOLERANCE:
        warnings.append(f"gaps between tokens miss {share:.2%} of the time from first to last; ITL is off")
    return [warning for warning in warnings if warning]


def _without_answer(requests: RequestRows, status: str) -> str:
    """Count requests of one *status* with the commonest reason, or return an empty text."""
    code = Status[status.upper()]
    reasons = Counter(requests.reasons[index] for index in np.flatnonzero(requests.status == code))
    if not reasons:
        return ""
    commonest, _ = reasons.most_common(1)[0]
    count = f"{reasons.total():,} of {len(requests.reasons):,} requests {status}"
    return f"{count}: {commonest}" if commonest else count
