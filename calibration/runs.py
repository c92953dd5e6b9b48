"""One benchmark run as every importer returns it: what ran, under which load, and what was measured. SI units.

What a file does not state is None, never a guess; nothing here is corrected.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "LATENCIES",
    "STATISTICS",
    "LoadKind",
    "Requests",
    "Run",
    "Steps",
    "latencies",
    "latency",
    "load_of",
    "summary_of",
]

Floats = NDArray[np.float64]
LoadKind = Literal["concurrency", "rate", "offline", "batch", "trace"]
"""Closed loop; open loop; all at once; one static batch; the arrivals of the run's own `requests`."""

LATENCIES = ("ttft", "tpot", "itl", "e2e")
STATISTICS = ("mean", "p50", "p90", "p95", "p99")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Requests:
    """The completed requests of a run, one element each; None where the file does not tell.

    Attributes
    ----------
    arrival_s
        When each was sent, from an instant that all share.
    gaps_s
        The gaps between the chunks that each client received: one array a request.
    """

    arrival_s: Floats | None = None
    input_tokens: Floats | None = None
    output_tokens: Floats | None = None
    ttft_s: Floats | None = None
    tpot_s: Floats | None = None
    e2e_s: Floats | None = None
    gaps_s: tuple[Floats, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Steps:
    """Iterations of an engine, one element each.

    Attributes
    ----------
    kv_tokens
        Sum of the contexts that the decoding sequences attend to.
    gap_steps
        How many iterations passed since the one before in the arrays.
    exact
        Whether time and composition surely belong to one another.
    """

    step_s: Floats
    prefill_requests: Floats
    prefill_tokens: Floats
    decode_sequences: Floats
    kv_tokens: Floats
    gap_steps: Floats | None = None
    exact: Floats | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One row: a deployment under one load.

    Attributes
    ----------
    file, format
        Where it came from and what that file was recognised as.
    mode
        ``agg`` or ``disagg``, with ``+spec`` for speculative decoding.
    input_len, output_len
        Mean tokens of a request as they were served, not as they were asked for, where the file tells.
    context_len
        Tokens that were in the KV cache before the timed part began (llama-bench's depth).
    load_value
        Requests in flight, requests/s or the size of the batch, by `load`.
    rate_cap_rps, inflight_cap
        Limits of the client besides its load.
    prefix_hit_share
        Share of the prompt tokens that were found in a prefix cache.
    output_tok_s, total_tok_s
        Of the whole deployment; total is prompts and answers.
    tpot_*
        (E2E - TTFT) / (output tokens - 1) of a request; `itl_*` is between the chunks that a client receives.
    """

    file: str = ""
    format: str = ""
    case_id: str | None = None
    source: str | None = None
    date: str | None = None
    engine: str | None = None
    version: str | None = None
    gpu: str | None = None
    n_gpus: int | None = None
    tp: int | None = None
    pp: int | None = None
    ep: int | None = None
    dp: int | None = None
    dp_attention: bool | None = None
    mode: str | None = None
    model: str | None = None
    weight_dtype: str | None = None
    kv_dtype: str | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    max_model_len: int | None = None
    gpu_memory_utilization: float | None = None
    chunked_prefill: bool | None = None
    prefix_caching: bool | None = None
    input_len: float | None = None
    input_len_std: float | None = None
    output_len: float | None = None
    output_len_std: float | None = None
    context_len: float | None = None
    len_distribution: str | None = None
    load: LoadKind | None = None
    load_value: float | None = None
    arrival: str | None = None
    rate_cap_rps: float | None = None
    inflight_cap: float | None = None
    num_requests: int | None = None
    completed: int | None = None
    failed: int | None = None
    duration_s: float | None = None
    shared_prefix_tokens: float | None = None
    prefix_hit_share: float | None = None
    weights_bytes: float | None = None
    activation_bytes: float | None = None
    non_torch_bytes: float | None = None
    cuda_graph_bytes: float | None = None
    kv_bytes: float | None = None
    kv_tokens: int | None = None
    kv_blocks: int | None = None
    kv_block_size: int | None = None
    output_tok_s: float | None = None
    total_tok_s: float | None = None
    req_s: float | None = None
    ttft_mean_s: float | None = None
    ttft_p50_s: float | None = None
    ttft_p90_s: float | None = None
    ttft_p95_s: float | None = None
    ttft_p99_s: float | None = None
    tpot_mean_s: float | None = None
    tpot_p50_s: float | None = None
    tpot_p90_s: float | None = None
    tpot_p95_s: float | None = None
    tpot_p99_s: float | None = None
    itl_mean_s: float | None = None
    itl_p50_s: float | None = None
    itl_p90_s: float | None = None
    itl_p95_s: float | None = None
    itl_p99_s: float | None = None
    e2e_mean_s: float | None = None
    e2e_p50_s: float | None = None
    e2e_p90_s: float | None = None
    e2e_p95_s: float | None = None
    e2e_p99_s: float | None = None
    quality: str | None = None
    notes: str | None = None
    requests: Requests | None = None
    steps: Steps | None = None

    def typical(self, metric: str) -> float | None:
        """Return the mean of a latency, or its median where a file has no mean [s]."""
        mean: float | None = getattr(self, f"{metric}_mean_s")
        median: float | None = getattr(self, f"{metric}_p50_s")
        return median if mean is None else mean

    @property
    def duration_of_request_s(self) -> float | None:
        """End-to-end latency of a typical request; from TTFT and TPOT where it was not measured itself [s]."""
        if (measured := self.typical("e2e")) is not None:
            return measured
        ttft, tpot = self.typical("ttft"), self.typical("tpot")
        if ttft is None or tpot is None or self.output_len is None:
            return None
        return ttft + tpot * max(self.output_len - 1, 0.0)

    @property
    def completed_per_s(self) -> float | None:
        """Completed requests per second, from the counts where they are known, since tools print few digits."""
        if self.completed and self.duration_s:
            return self.completed / self.duration_s
        if self.req_s is None and self.output_tok_s and self.output_len:
            return self.output_tok_s / self.output_len
        return self.req_s

    @property
    def mean_in_flight(self) -> float | None:
        """Requests in flight by Little's law: completed per second times how long one takes."""
        rate, duration = self.completed_per_s, self.duration_of_request_s
        return None if rate is None or duration is None else rate * duration


def latency(metric: str, values: Mapping[str, float | None], unit_s: float = 1.0) -> dict[str, Any]:
    """Return the fields of one latency from its `STATISTICS` in units of *unit_s*.

    A zero is what tools print when nothing was measured, so it counts as unknown.
    """
    known = {name: value * unit_s for name, value in values.items() if value}
    return {f"{metric}_{name}_s": value for name, value in known.items()}


def latencies(values: Mapping[str, Mapping[str, float | None]], unit_s: float = 1.0) -> dict[str, Any]:
    """Return the fields of several latencies in units of *unit_s*, each by its `STATISTICS`."""
    fields: dict[str, Any] = {}
    for metric, statistics in values.items():
        fields |= latency(metric, statistics, unit_s)
    return fields


def load_of(rate_rps: float | None, inflight: float | None) -> dict[str, Any]:
    """Return the load of a client that sends *rate_rps*, infinite or None if at will, with *inflight* at most."""
    if rate_rps is not None and math.isfinite(rate_rps):
        return {"load": "rate", "load_value": rate_rps, "inflight_cap": inflight}
    if inflight is not None:
        return {"load": "concurrency", "load_value": inflight}
    return {"load": "offline"}


def summary_of(requests: Requests) -> dict[str, Any]:
    """Return the fields of a run that follow from its requests: counts, lengths, latencies and rates.

    Percentiles are interpolated linearly between the two nearest, as numpy's and the tools' are.
    """
    fields = latencies({metric: _statistics(getattr(requests, f"{metric}_s")) for metric in ("ttft", "tpot", "e2e")})
    for side in ("input", "output"):
        if (tokens := getattr(requests, f"{side}_tokens")) is not None:
            fields |= {f"{side}_len": float(tokens.mean()), f"{side}_len_std": float(tokens.std())}
    return fields | _rates(requests)


def _statistics(values: Floats | None) -> dict[str, float | None]:
    known = values[np.isfinite(values)] if values is not None else np.empty(0)
    if known.size == 0:
        return {}
    percentiles = np.percentile(known, [50, 90, 95, 99]).tolist()
    return dict(zip(STATISTICS, [float(known.mean()), *percentiles], strict=True))


def _rates(requests: Requests) -> dict[str, Any]:
    """Return rates over the time from the first arrival to the last answer."""
    if requests.arrival_s is None or requests.e2e_s is None:
        return {}
    duration_s = float((requests.arrival_s + requests.e2e_s).max() - requests.arrival_s.min())
    if duration_s <= 0:
        return {}
    fields = {"duration_s": duration_s, "req_s": len(requests.arrival_s) / duration_s}
    if requests.output_tokens is not None:
        fields["output_tok_s"] = float(requests.output_tokens.sum()) / duration_s
        if requests.input_tokens is not None:
            fields["total_tok_s"] = fields["output_tok_s"] + float(requests.input_tokens.sum()) / duration_s
    return fields
