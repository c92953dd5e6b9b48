"""What a deployment gives when requests always wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sim.cluster import Timeouts
from sim.experiment import Experiment
from sim.simulate import ReadyPool, Result, Setup, simulate

__all__ = ["saturated"]

_MOST_REQUESTS = 2000  # are enough to saturate


def saturated(experiment: Experiment, pools: Sequence[ReadyPool]) -> Result | None:
    """Run *experiment* with every request there from the start; None where lengths are not apart from the arrivals.

    Every replica that its *pools* may have is ready, nothing breaks, and nobody is turned away or gives up.
    """
    workload = experiment.workload
    if workload.lengths is None:
        return None
    count = min(workload.num_requests or _MOST_REQUESTS, _MOST_REQUESTS)
    written = {**workload.model_dump(), "arrivals": {"kind": "offline"}, "num_requests": count, "patience": None}
    changes = {"workload": type(workload).model_validate(written), "slo": None, "admission": None, "failures": None}
    return simulate(experiment.model_copy(update=changes), pools=list(_all_ready(pools)))


def _all_ready(pools: Sequence[ReadyPool]) -> Iterator[ReadyPool]:
    first = 0
    for pool in pools:
        deployment = pool.experiment.deployment.model_copy(update={"replicas": pool.most_wanted})
        alone = pool.experiment.model_copy(update={"deployment": deployment, "autoscaler": None, "failures": None})
        ready = replace(pool, experiment=alone, setup=_patient(pool.setup), first=first)
        yield ready
        first += ready.replicas


def _patient(setup: Setup) -> Setup:
    """Return *setup* with an engine that lets requests wait for ever."""
    scheduler = setup.engine.scheduler.model_copy(update={"max_num_queued_reqs": None})
    return replace(setup, engine=replace(setup.engine, scheduler=scheduler, timeouts=Timeouts()))
