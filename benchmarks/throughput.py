"""Output tokens for each CPU second, and time for each request at short and long answers; see README.md."""

from __future__ import annotations

import argparse

from measure import heading, simulated

EXPERIMENT = """\
model: meta-llama/Llama-3.1-8B-Instruct
deployment: {gpu: H100-SXM-80GB}
engine: {scheduler: {kind: chunked_prefill}}
workload:
  arrivals: {kind: poisson, rate: 4}
  lengths: {kind: fixed, input_tokens: 512, output_tokens: 128}
  num_requests: 10000
"""
OUTPUT_TOKENS = (128, 2048)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="runs of each case; the least CPU time counts")
    parser.add_argument("--requests", type=int, default=10_000)
    options = parser.parse_args()
    heading(f"{options.requests:,} requests, 512 tokens in, Poisson 4/s, Llama-3.1-8B on one H100, chunked prefill")
    start_s = simulated(EXPERIMENT, ["workload.num_requests=1"], options.repeats)[0].cpu_s
    print(f"start-up {start_s:.3f} CPU s (one request), subtracted below\n")
    print(f"{'tokens out':>10} {'CPU s':>8} {'us/request':>11} {'output tok / CPU s':>19} {'iterations':>11}")
    for output_tokens in OUTPUT_TOKENS:
        settings = [f"workload.lengths.output_tokens={output_tokens}", f"workload.num_requests={options.requests}"]
        cost, result = simulated(EXPERIMENT, settings, options.repeats)
        cpu_s = cost.cpu_s - start_s
        rate = result["total_output_tokens"] / cpu_s
        a_request_us, iterations = 1e6 * cpu_s / options.requests, result["engine_iterations"]
        print(f"{output_tokens:>10} {cpu_s:>8.3f} {a_request_us:>11.1f} {rate:>19,.0f} {iterations:>11,}")


if __name__ == "__main__":
    main()
