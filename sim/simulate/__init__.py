"""simulate(Experiment) -> Result: the main path, once through."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sim.cluster import Cluster
from sim.experiment import Experiment
from sim.garbage import uncollected
from sim.metrics.context import RunContext
from sim.metrics.instances import InstanceRows
from sim.metrics.rows import RequestRows, StrideRows
from sim.metrics.summary import Summary, summarise
from sim.metrics.transfers import TransferRows
from sim.simulate.bare_bounds import bare_bound_warnings
from sim.simulate.borrowed import borrowed_warnings
from sim.simulate.bunches import bunch_warnings
from sim.simulate.disaggregation import decided
from sim.simulate.idle import idle_warnings, refuse_idle_admission
from sim.simulate.pools import ReadyPool, ask_for_services, ready_pools, refuse_unknown_places
from sim.simulate.setup import Setup, prepare
from sim.simulate.uncertainty import capacity_warnings, model_error
from sim.workload import generate
from sim.workload.traffic import Beginnings, Traffic

__all__ = ["Played", "ReadyPool", "Result", "Setup", "play", "prepare", "ready_pools", "simulate"]


_LARGE = 100_000
_MOST_DRAFTED = 2**26  # tokens of a request, for each of which a number is drawn: half a gigabyte


class Played(NamedTuple):
    """A workload that was served, and its raw rows; *lives* are None where replicas do not come and go."""

    traffic: Traffic
    requests: RequestRows
    strides: StrideRows
    lives: InstanceRows | None
    transfers: TransferRows


@dataclass(frozen=True, slots=True)
class Result:
    """What became of an experiment: raw rows, what they do not tell, and the metrics computed from both.

    *lives* are those of the replicas, where they come and go.
    """

    experiment: Experiment
    pools: Sequence[ReadyPool]
    beginnings: Beginnings
    requests: RequestRows
    strides: StrideRows
    lives: InstanceRows | None
    transfers: TransferRows
    context: RunContext
    summary: Summary

    @property
    def setup(self) -> Setup:
        """The first pool, made ready; of most experiments the only one."""
        return self.pools[0].setup

    @property
    def kv_blocks(self) -> list[int]:
        """KV blocks of every replica, by its number."""
        return [pool.setup.engine.num_blocks for pool in self.pools for _ in range(pool.replicas)]


def simulate(
    experiment: Experiment,
    on_progress: Callable[[int, int], None] | None = None,
    pools: Sequence[ReadyPool] | None = None,
    *,
    brief: bool = False,
) -> Result:
    """Run *experiment* to the end of its workload.

    Parameters
    ----------
    on_progress
        Called now and then with the requests answered so far and their total.
    pools
        The experiment made ready already; missing: `ready_pools` does it.
    brief
        Latencies and rates are enough: neither prices nor power nor where the iterations' time goes.

    Raises
    ------
    UserError
        For an experiment, profile or trace that cannot be used.
    InfeasibleError
        If the model does not fit the accelerators.
    """
    began_s = time.perf_counter()
    pools = pools or ready_pools(experiment)
    traffic, requests, strides, lives, transfers = play(experiment, pools, on_progress)
    contexts = tuple(pool.context(strides, lives, brief=brief) for pool in pools)
    context = RunContext(
        pools=contexts,
        slo=experiment.slo,
        class_slos={each.name: each.slo for each in experiment.workload.classes},
        wall_s=time.perf_counter() - began_s,
        warnings=(
            *traffic.warnings,
            *bare_bound_warnings(experiment),
            *borrowed_warnings(pools),
            *idle_warnings(experiment, pools, traffic),
            *bunch_warnings(experiment, traffic, requests),
            *capacity_warnings(pools, contexts, strides),
        ),
        model_error=model_error(pools, contexts, requests, strides),
    )
    beginnings, large = traffic.beginnings(), len(traffic.requests) >= _LARGE
    del traffic
    if large:  # requests weigh more than all their rows, and the replicas that refer to them refer to each other
        gc.collect()
    summary = summarise(requests, strides, context, transfers)
    return Result(experiment, pools, beginnings, requests, strides, lives, transfers, context, summary)


def play(
    experiment: Experiment, pools: Sequence[ReadyPool], on_progress: Callable[[int, int], None] | None = None
) -> Played:
    """Serve the workload and return it with its raw rows, for callers that need no more than a few of them."""
    refuse_unknown_places(experiment, pools)
    disaggregation = decided(experiment, pools)
    traffic = generate(experiment.workload, experiment.seed, experiment.folder)
    _refuse_beyond_window(experiment, pools, traffic)
    _refuse_endless_drafts(experiment, pools, traffic)
    refuse_idle_admission(experiment, traffic.requests)
    ask_for_services(experiment, pools, traffic.requests)
    total = len(traffic.requests)
    every = max(total // 100, 1)

    def answered(count: int) -> None:
        if on_progress is not None and (count % every == 0 or count == total):
            on_progress(count, total)

    fleet = Cluster(
        [pool.to_run() for pool in pools],
        experiment.router,
        traffic,
        answered,
        experiment.seed,
        admission=experiment.admission,
        failures=experiment.failures,
        gateway_timeout_s=experiment.lifecycle.gateway_timeout_s,
        disaggregation=disaggregation,
    )
    with uncollected():  # requests, of which a run makes no cycles, would be looked through again and again
        strides = fleet.run()
    changes = experiment.failures is not None or any(pool.experiment.autoscaler is not None for pool in pools)
    lives = fleet.lives() if changes else None
    requests = _as_seen(RequestRows.of(traffic.requests), pools)
    return Played(traffic, requests, strides, lives, fleet.transfers())


def _as_seen(requests: RequestRows, pools: Sequence[ReadyPool]) -> RequestRows:
    """Return the rows as clients see them, who get tokens late."""
    lags = np.repeat([pool.setup.stream_lag_iterations for pool in pools], [pool.replicas for pool in pools])
    return requests.seen_late(lags[requests.replica])


def _refuse_endless_drafts(experiment: Experiment, pools: Sequence[ReadyPool], traffic: Traffic) -> None:
    """Refuse a request whose drafts, each of which is drawn, no memory would hold."""
    if all(pool.experiment.engine.speculative is None for pool in pools):
        return
    longest = int(traffic.total_tokens().max())
    if longest > _MOST_DRAFTED:
        message = f"a request has {longest:,} tokens: with drafts, at most {_MOST_DRAFTED:,} are simulated"
        raise experiment.error("workload", message)


def _refuse_beyond_window(experiment: Experiment, pools: Sequence[ReadyPool], traffic: Traffic) -> None:
    """Refuse a workload none of whose requests any engine would accept; with a memory plan only."""
    shortest = int(traffic.total_tokens().min())
    longest = max(pool.setup.engine.max_model_len for pool in pools)
    if shortest > longest and all(pool.setup.memory is not None for pool in pools):
        raise experiment.error(
            "workload", f"every request has at least {shortest} tokens, more than max_model_len {longest}"
        )
