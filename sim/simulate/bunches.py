"""Users of a closed loop who come in bunches, so that latencies tell the bunches and not the load."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sim.experiment import Experiment
from sim.metrics.first_turns import first_turns_over_s
from sim.metrics.latency import Sample
from sim.metrics.rows import RequestRows
from sim.units import format_seconds
from sim.workload.arrivals.closed_loop import ClosedLoopArrivals
from sim.workload.traffic import Traffic

__all__ = ["bunch_warnings"]

_MATTERS = 0.1  # change of the TTFT p95 that is worth a line
_FEWEST = 20  # requests that have a 95th percentile


def bunch_warnings(experiment: Experiment, traffic: Traffic, requests: RequestRows) -> Iterator[str]:
    """Say so where users keep step, or where the wave of their first requests weighs in the result."""
    arrivals = experiment.workload.arrivals
    if not isinstance(arrivals, ClosedLoopArrivals) or arrivals.concurrency == 1:
        return
    if arrivals.think_s > 0 and arrivals.think_distribution == "fixed":
        yield (
            "all users pause equally long and so come in bunches: workload.arrivals.think_distribution: exponential"
            " spreads them"
        )
    if arrivals.ramp_s == 0 and arrivals.request_rate is None:
        yield from _first_wave(arrivals.concurrency, traffic, requests)


def _first_wave(users: int, traffic: Traffic, requests: RequestRows) -> Iterator[str]:
    over_s = first_turns_over_s(traffic.slots_open_s, requests.arrival_s)
    later = requests.ttft_s[requests.completed & (requests.arrival_s >= over_s)]
    if len(later) < _FEWEST or len(later) < users:
        return
    all_s, later_s = (Sample.of(ttft_s).percentile(95) for ttft_s in (requests.ttft_s[requests.completed], later))
    if not np.isclose(later_s, all_s, rtol=_MATTERS):
        yield (
            f"all {users:,} users begin at once: without these first requests the TTFT p95 is"
            f" {format_seconds(later_s)}; workload.arrivals.ramp_s spreads them"
        )
