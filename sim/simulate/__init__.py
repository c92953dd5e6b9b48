"""simulate(Experiment) -> Result: the main path, once through."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from sim.cluster import Cluster
from sim.experiment import Experiment
from sim.metrics.rows import RequestRows, StrideRows
from sim.metrics.summary import RunContext, Summary, summarise
from sim.simulate.limits import time_shares
from sim.simulate.setup import Setup, prepare
from sim.simulate.uncertainty import capacity_warning, model_error
from sim.workload import generate
from sim.workload.traffic import Traffic

__all__ = ["Result", "Setup", "play", "prepare", "simulate"]


@dataclass(frozen=True, slots=True)
class Result:
    """What became of an experiment: raw rows, and the metrics computed from them."""

    experiment: Experiment
    setup: Setup
    traffic: Traffic
    requests: RequestRows
    strides: StrideRows
    summary: Summary


def simulate(
    experiment: Experiment,
    on_progress: Callable[[int, int], None] | None = None,
    setup: Setup | None = None,
) -> Result:
    """Run *experiment* to the end of its workload.

    Parameters
    ----------
    on_progress
        Called now and then with the requests answered so far and their total.
    setup
        The experiment made ready already; missing: `prepare` does it.

    Raises
    ------
    UserError
        For an experiment, profile or trace that cannot be used.
    InfeasibleError
        If the model does not fit the accelerators.
    """
    began_s = time.perf_counter()
    setup = setup or prepare(experiment)
    traffic, requests, strides = play(experiment, setup, on_progress)
    deployment = experiment.deployment
    context = RunContext(
        num_gpus=deployment.replicas * deployment.parallelism.gpus,
        num_replicas=deployment.replicas * setup.engine.attention_ranks,
        kv_blocks=setup.engine.num_blocks,
        block_size=setup.engine.block_size,
        slo=experiment.slo,
        gpu_hour_usd=experiment.prices.gpu_hour_usd,
        time_shares=time_shares(strides, setup.engine.cost),
        wall_s=time.perf_counter() - began_s,
        warnings=(*traffic.warnings, *filter(None, [capacity_warning(setup, strides)])),
        model_error=model_error(experiment, setup, requests, strides),
    )
    return Result(experiment, setup, traffic, requests, strides, summarise(requests, strides, context))


def play(
    experiment: Experiment, setup: Setup, on_progress: Callable[[int, int], None] | None = None
) -> tuple[Traffic, RequestRows, StrideRows]:
    """Serve the workload and return it with its raw rows, for callers that need no more than a few of them."""
    traffic = generate(experiment.workload, experiment.seed, experiment.folder)
    _refuse_beyond_window(experiment, setup, traffic)
    total = len(traffic.requests)
    every = max(total // 100, 1)

    def answered(count: int) -> None:
        if on_progress is not None and (count % every == 0 or count == total):
            on_progress(count, total)

    strides = Cluster(setup.engine, experiment.deployment.replicas, experiment.router, traffic, answered).run()
    return traffic, RequestRows.of(traffic.requests).seen_late(setup.stream_lag_iterations), strides


def _refuse_beyond_window(experiment: Experiment, setup: Setup, traffic: Traffic) -> None:
    """Refuse a workload none of whose requests the engine would accept; with a memory plan only."""
    shortest = min(request.total_tokens for request in traffic.requests)
    if setup.memory is not None and shortest > setup.engine.max_model_len:
        raise experiment.error(
            "workload",
            f"every request has at least {shortest} tokens, more than max_model_len {setup.engine.max_model_len}",
        )
