"""CPU time for each request behind 1 to 1,000 replicas, by router; see README.md."""

from __future__ import annotations

import argparse

from measure import heading, simulated

EXPERIMENT = """\
model: meta-llama/Llama-3.1-8B-Instruct
deployment: {gpu: H100-SXM-80GB}
engine: {scheduler: {kind: chunked_prefill}, max_model_len: 32768}
workload: {arrivals: {kind: poisson, rate: 2}, lengths: {kind: preset, name: chat}, num_requests: 20000}
"""
ROUTERS = (
    *("round_robin", "random", "power_of_two", "least_loaded", "least_tokens", "queue_depth", "least_kv"),
    *("session_affinity", "prefix_affinity", "kv_aware", "weighted"),
)
REPLICAS = (1, 10, 100, 1000)


def request_us(router: str, replicas: int, options: argparse.Namespace, start_s: float) -> float:
    """Return the CPU time of a request [us]; the replicas' own making is part of it."""
    spread = [f"router.kind={router}", f"deployment.replicas={replicas}", f"workload.arrivals.rate={2 * replicas}"]
    cost, _ = simulated(EXPERIMENT, [*spread, f"workload.num_requests={options.requests}"], options.repeats)
    return 1e6 * (cost.cpu_s - start_s) / options.requests


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="runs of each case; the least CPU time counts")
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--routers", nargs="+", default=ROUTERS)
    options = parser.parse_args()
    heading("CPU time of a request [us], chat lengths, 2/s a replica, start-up subtracted")
    start_s = simulated(EXPERIMENT, ["workload.num_requests=1"], options.repeats)[0].cpu_s
    print(f"{'router':<14}" + "".join(f"{replicas:>9,}" for replicas in REPLICAS) + f"{'largest / 1':>13}")
    for router in options.routers:
        times_us = [request_us(router, replicas, options, start_s) for replicas in REPLICAS]
        print(f"{router:<14}" + "".join(f"{us:>9.1f}" for us in times_us) + f"{times_us[-1] / times_us[0]:>13.2f}")


if __name__ == "__main__":
    main()
