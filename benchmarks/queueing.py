"""Mean waits behind a router against queueing theory; run with ``PYTHONPATH=tests/support``; see README.md."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
import queues

from sim.router.least_loaded import LeastLoaded
from sim.router.power_of_two import PowerOfTwo
from sim.router.random import Random
from sim.router.round_robin import RoundRobin

SERVERS = (2, 4, 8, 16, 32, 64)
LOADS = (0.5, 0.8)


def laws(load: float, servers: int) -> Iterator[tuple[str, type, bool, str]]:
    """Yield the queue, its router, whether services are exponential, and the mean wait or its bounds [s]."""
    yield "M, random", Random, True, f"{queues.m_m_1(load):.4f}"
    yield "D, random", Random, False, f"{queues.m_d_1(load):.4f}"
    yield "M, round_robin", RoundRobin, True, f"{queues.round_robin_m(load, servers):.4f}"
    yield "D, round_robin", RoundRobin, False, f"{queues.m_d_c(load, servers):.4f}"
    bounds = f"{queues.m_m_c(load, servers):.4f} to {queues.round_robin_m(load, servers):.4f}"
    yield "M, least_loaded", LeastLoaded, True, f"{queues.shortest_of_two(load):.4f}" if servers == 2 else bounds
    bounds = f"{queues.m_d_c(load, servers):.4f} to {queues.m_d_1(load):.4f}"
    yield "D, least_loaded", LeastLoaded, False, bounds


def judged(low_s: float, high_s: float, truth: str) -> bool:
    """Tell whether the interval agrees with the truth, or with its bounds."""
    bounds = [float(bound) for bound in truth.split(" to ")]
    return low_s - 5e-5 <= bounds[-1] and high_s + 5e-5 >= bounds[0]


def main() -> None:
    """Print the table of waits, then the tail of two choices."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=8)
    parser.add_argument("--requests", type=int, default=400, help="of each server at least; half of them do not count")
    options = parser.parse_args()
    print(f"{'servers':>7} {'load':>5}  {'queue':<16} {'mean wait, 99 % interval [s]':<30} theory")
    for servers in SERVERS:
        for load in LOADS:
            for name, router, exponential, truth in laws(load, servers):
                count = max(options.requests * servers, 12_000)
                runs = (
                    queues.served(router(), servers, load, count, seed, exponential=exponential)
                    for seed in range(options.replications)
                )
                low_s, high_s = queues.interval([float(run.queue_s[count // 2 :].mean()) for run in runs])
                verdict = "" if judged(low_s, high_s, truth) else "  OUTSIDE"
                shown = f"{(low_s + high_s) / 2:.4f} ({max(low_s, 0):.4f} - {high_s:.4f})"
                print(f"{servers:>7} {load:>5}  {name:<16} {shown:<30} {truth}{verdict}", flush=True)
    _tail(1000, 0.9)


def _tail(servers: int, load: float) -> None:
    runs = (queues.served(PowerOfTwo(), servers, load, 60 * servers, seed, exponential=True) for seed in range(4))
    shares = np.mean([queues.tail(run, servers, 30.0) for run in runs], axis=0)
    print(f"\npower_of_two, {servers:,} servers with load {load}: share with at least so many requests")
    for count in range(1, 7):
        print(f"{count:>3} {shares[count - 1]:.5f}, in the limit {queues.shortest_of_d(load, count):.5f}")


if __name__ == "__main__":
    main()
