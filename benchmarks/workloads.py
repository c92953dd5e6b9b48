"""The speed on larger and harder workloads, and how it grows; see README.md."""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

from measure import heading, simulated

DENSE = """\
model: meta-llama/Llama-3.1-8B-Instruct
deployment: {gpu: H100-SXM-80GB}
engine: {scheduler: {kind: chunked_prefill}, max_model_len: 32768}
workload: {arrivals: {kind: poisson, rate: 4}, lengths: {kind: preset, name: chat}, num_requests: 10000}
"""
MOE = DENSE.replace("meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-235B-A22B").replace(
    "H100-SXM-80GB", "H100-SXM-80GB, parallelism: {tp: 8, ep: 8}"
)
SESSIONS = DENSE[: DENSE.index("workload")] + "workload: {arrivals: {kind: trace, path: TRACE}}\n"
FIXED = "workload.lengths={kind: fixed, input_tokens: 512, output_tokens: 128}"


def case(name: str, experiment: str, *overrides: str, start_s: float, repeats: int) -> None:
    """Run one case and print its line."""
    cost, result = simulated(experiment, overrides, repeats)
    cpu_s, requests = cost.cpu_s - start_s, result["completed"] + result["rejected"]
    print(
        f"{name:<44} {requests:>9,} {cpu_s:>8.2f} {1e6 * cpu_s / requests:>11.1f}"
        f" {result['total_output_tokens'] / cpu_s:>12,.0f} {cost.peak_bytes / 2**30:>9.2f}",
        flush=True,
    )


def sessions(count: int, turns: int) -> Iterator[str]:
    """Yield the rows of a trace in which every turn's prompt holds all that was said before."""
    draws = random.Random(1)
    start_s = 0.0
    for session in range(count):
        start_s += draws.expovariate(1.0)
        pieces: list[tuple[str, int]] = [("system", 400)]
        for turn in range(turns):
            asked, answered = draws.randint(20, 300), draws.randint(50, 400)
            pieces.append((f"q{session}.{turn}", asked))
            answer = f"a{session}.{turn}"
            yield json.dumps(
                {
                    "arrival_s": start_s,
                    "input_tokens": sum(tokens for _, tokens in pieces),
                    "output_tokens": answered,
                    "segments": pieces,
                    "output_segment": answer,
                    "session_id": str(session),
                    "turn": turn,
                    "think_s": draws.expovariate(0.1) if turn else 0.0,
                }
            )
            pieces.append((answer, answered))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="runs of each case; the least CPU time counts")
    parser.add_argument("--large", action="store_true", help="also a million requests, which takes minutes")
    options = parser.parse_args()
    heading("Workloads, metrics and intervals on, start-up subtracted")
    repeats = options.repeats
    start_s = simulated(DENSE, ["workload.num_requests=1"], repeats)[0].cpu_s
    same = {"start_s": start_s, "repeats": repeats}
    print(f"{'case':<44} {'requests':>9} {'CPU s':>8} {'us/request':>11} {'tok / CPU s':>12} {'peak GiB':>9}")
    case("512/128, 4/s", DENSE, FIXED, **same)
    case("512/128, 4/s, every iteration by itself", DENSE, FIXED, "stride=off", **same)
    case("chat lengths, 2/s", DENSE, "workload.arrivals.rate=2", **same)
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "sessions.jsonl")
        trace.write_text("\n".join(sessions(2000, 5)), encoding="utf-8")
        case("prefix caching, sessions of 5 turns", SESSIONS.replace("TRACE", str(trace)), **same)
    moe_s = simulated(MOE, ["workload.num_requests=1"], repeats)[0].cpu_s
    case("MoE, EP8, chat lengths, 4/s", MOE, start_s=moe_s, repeats=repeats)
    for requests in (100_000, 1_000_000) if options.large else (10_000, 100_000):
        spread = ("deployment.replicas=32", "workload.arrivals.rate=64", f"workload.num_requests={requests}")
        case("chat lengths on 32 replicas, 64/s", DENSE, *spread, start_s=start_s, repeats=1)


if __name__ == "__main__":
    main()
