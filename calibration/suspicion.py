"""What makes a measured run unfit to calibrate with: arithmetic that does not add up. It is flagged, never corrected.

Each check is one function that returns the evidence and the remedy, or nothing. It needs no more than the run itself;
only the physical bounds look up the model and the accelerator, and stay silent where those have no profile.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibration.runs import Run
from sim.errors import SimError
from sim.profiles.hardware import Hardware
from sim.profiles.library import load_hardware, load_model
from sim.profiles.model import Model
from sim.profiles.quantization import BITS_PER_WEIGHT
from sim.units import format_seconds

__all__ = ["CHECKS", "Flag", "suspicions"]

REQUESTS_PER_SLOT = 5  # below, the ramps at both ends weigh as much as the steady part
IN_FLIGHT_LOW, IN_FLIGHT_HIGH = 0.8, 1.1  # ramps lower Little's product; nothing honest raises it
TPOT_LOW, TPOT_HIGH = 0.75, 1.33  # lengths that vary move a mean of ratios, but not by as much
SLOW_MEAN = 2.0  # mean TTFT over median
SLOW_FIRST = 3.0  # TTFT of the first requests over that of the others
SLOW_SHARE = 1 / 20
CAP_REACHED = 0.7  # a mean this near to the cap means that peaks were cut
ACHIEVED = 0.9
CHUNK_TOKENS = 1.15
HIT_SHARE = 0.01
FAILED_SHARE = 0.01
PHYSICS_MARGIN = 0.98  # rounding of what is published
_WEIGHT_NAMES = {"f16": "fp16", "f32": "fp32", "float16": "fp16", "bfloat16": "bf16", "fp4": "mxfp4", "awq": "int4"}
_FILE_NAME = re.compile(r"^[/.~]|\.(json|ya?ml)$|\n")


@dataclass(frozen=True, slots=True)
class Flag:
    """A reason to doubt a run.

    Attributes
    ----------
    check
        Its name, such as ``littles_law``.
    text
        The evidence in numbers, and what to do.
    severity
        A note says what to keep in mind; a warning, that the run should not be fitted as it is.
    """

    check: str
    text: str
    severity: Literal["warning", "note"] = "warning"


def suspicions(run: Run) -> list[Flag]:
    """Return all flags of a run; one in which every request failed has no other."""
    if (failed := check_failures(run)) and not run.completed:
        return [failed]
    return [flag for check in CHECKS if (flag := check(run))]


def check_failures(run: Run) -> Flag | None:
    """Flag a run whose requests all failed, or so many that the others are a selection."""
    asked = run.num_requests or (run.completed or 0) + (run.failed or 0)
    if run.completed == 0 and asked:
        return Flag("failures", f"all {asked:,} requests failed, so nothing was measured: see the server's log")
    if not run.failed or run.failed <= FAILED_SHARE * asked:
        return None
    share = f"{run.failed:,} of {asked:,} requests failed ({run.failed / asked:.0%})"
    return Flag("failures", f"{share}: what is left is a selection; lower the load or raise the timeout and repeat")


def check_littles_law(run: Run) -> Flag | None:
    """Flag a closed loop in which throughput times latency is not the concurrency."""
    found = run.mean_in_flight
    if run.load != "concurrency" or not run.load_value or found is None or not _has_means(run):
        return None
    if IN_FLIGHT_LOW <= found / run.load_value <= IN_FLIGHT_HIGH:
        return None
    product = f"{run.completed_per_s:.4g} requests/s x {run.duration_of_request_s:.4g} s"
    why = (
        "some number is not what it is called: check units, lengths and GPU count"
        if found > run.load_value
        else "the client never held its load, or lengths are not those stated: send more requests, use real lengths"
    )
    return Flag("littles_law", f"{product} = {found:.4g} in flight, where the load was {run.load_value:g}: {why}")


def _has_means(run: Run) -> bool:
    return run.e2e_mean_s is not None or None not in (run.ttft_mean_s, run.tpot_mean_s)


def check_tpot(run: Run) -> Flag | None:
    """Flag a TPOT that is not the latency after the first token, by the tokens after it."""
    if run.e2e_mean_s is None or not run.ttft_mean_s or not run.tpot_mean_s or (run.output_len or 0) < 2:
        return None
    implied_s = (run.e2e_mean_s - run.ttft_mean_s) / (float(run.output_len or 0) - 1)
    if implied_s > 0 and TPOT_LOW <= run.tpot_mean_s / implied_s <= TPOT_HIGH:
        return None
    shown = f"TPOT is {format_seconds(run.tpot_mean_s)}, but (E2E - TTFT) / (tokens - 1) is {format_seconds(implied_s)}"
    half = implied_s > 0 and 0.4 <= run.tpot_mean_s / implied_s <= 0.6
    why = "the client counts two chunks a token" if half else "TPOT, latency or length is of another definition"
    return Flag("tpot", f"{shown}: {why}; fit to latency and TTFT, not to this TPOT")


def check_few_requests(run: Run) -> Flag | None:
    """Flag too few requests for a steady state."""
    slots = run.load_value if run.load == "concurrency" else run.mean_in_flight if run.load == "rate" else None
    count = run.completed or run.num_requests
    if not slots or not math.isfinite(slots) or not count or count >= REQUESTS_PER_SLOT * slots:
        return None
    shown = f"{count:,} requests are fewer than {REQUESTS_PER_SLOT} x {slots:.4g} in flight"
    wanted = math.ceil(REQUESTS_PER_SLOT * slots)
    return Flag("few_requests", f"{shown}: filling and draining dominate; send {wanted:,} or more")


def check_warm_up(run: Run) -> Flag | None:
    """Flag first requests that waited for kernels to compile, or all at once for each other."""
    if (first := _slow_start(run)) is not None:
        return Flag("warm_up", f"{first}: warm-up or an opening burst; leave them out, or use medians")
    mean, median = run.ttft_mean_s, run.ttft_p50_s
    if mean is None or median is None or mean <= SLOW_MEAN * median:
        return None
    shown = f"mean TTFT is {format_seconds(mean)}, the median {format_seconds(median)}"
    return Flag("warm_up", f"{shown}: a few requests waited for a warm-up or a burst; use medians, or repeat warm")


def _slow_start(run: Run) -> str | None:
    ttft_s = None if run.requests is None else run.requests.ttft_s
    if ttft_s is None or len(ttft_s) < 1 / SLOW_SHARE:
        return None
    count = int(len(ttft_s) * SLOW_SHARE)
    if run.load == "concurrency" and run.load_value:
        count = min(count, max(int(run.load_value), 1))
    first, rest = float(np.median(ttft_s[:count])), float(np.median(ttft_s[count:]))
    if first <= SLOW_FIRST * rest:
        return None
    return f"the first {count} requests had a TTFT of {format_seconds(first)}, the others {format_seconds(rest)}"


def check_client_cap(run: Run) -> Flag | None:
    """Flag a rate and a cap on what is in flight, which together are neither an open nor a closed loop."""
    cap = run.inflight_cap if run.load == "rate" else run.load_value if run.rate_cap_rps else None
    rate = run.rate_cap_rps or run.load_value
    if run.load not in ("rate", "concurrency") or not cap or not rate:
        return None
    both = f"the client sends {rate:g} requests/s with {cap:g} in flight at most"
    found = run.mean_in_flight
    if found is not None and found < CAP_REACHED * cap:
        text = f"{both}; {found:.3g} were in flight on average, so the cap hardly mattered: keep it in the experiment"
        return Flag("client_cap", text, "note")
    met = "it is not known whether the cap was met" if found is None else f"{found:.3g} were in flight, so it was met"
    return Flag("client_cap", f"{both}, and {met}: simulate both limits, or repeat with one of them")


def check_offered_rate(run: Run) -> Flag | None:
    """Flag an open loop that completes less than it is sent: overloaded or short."""
    rate, done = run.load_value, run.completed_per_s
    if run.load != "rate" or not rate or done is None or done >= ACHIEVED * rate:
        return None
    shown = f"{done:.4g} of {rate:g} requests/s were completed"
    if run.num_requests and run.duration_s and run.num_requests / rate < ACHIEVED * run.duration_s:
        shown += f" ({run.num_requests / rate:.4g} s of arrivals, {run.duration_s:.4g} s in all)"
    return Flag("offered_rate", f"{shown}: overloaded, or too short for its tail; compare latencies, not throughput")


def check_speculation(run: Run) -> Flag | None:
    """Flag steps that yield several tokens."""
    if run.mode and run.mode.endswith("+spec"):
        text = "speculative decoding: TPOT hangs on how many drafts were accepted; fit without it"
        return Flag("speculation", text)
    if not run.itl_mean_s or not run.tpot_mean_s or run.itl_mean_s <= CHUNK_TOKENS * run.tpot_mean_s:
        return None
    tokens = run.itl_mean_s / run.tpot_mean_s
    shown = f"ITL is {format_seconds(run.itl_mean_s)}, TPOT {format_seconds(run.tpot_mean_s)}"
    text = f"{shown}: {tokens:.3g} tokens a chunk, by speculation or a stream interval; fit to TPOT, not to ITL"
    return Flag("speculation", text, "note")


def check_prefix_hits(run: Run) -> Flag | None:
    """Flag prompts that were not computed, by what the file says or by the peak rate of the GPUs."""
    if (run.prefix_hit_share or 0) > HIT_SHARE:
        shown = f"{run.prefix_hit_share:.0%} of the prompt tokens were prefix hits"
        return Flag("prefix_hits", f"{shown}: TTFT says little of prefill; use new prompts, or simulate the hits")
    needed_s, ttft_s = _prefill_bound_s(run), run.ttft_p50_s or run.ttft_mean_s
    if needed_s is None or ttft_s is None or ttft_s >= PHYSICS_MARGIN * needed_s:
        return None
    needs = f"{run.input_len:,.0f} tokens take {format_seconds(needed_s)} at the peak rate of {_gpus(run)}"
    why = "the prompts were cached, or are shorter; repeat with prompts that differ"
    return Flag("prefix_hits", f"TTFT is {format_seconds(ttft_s)}, but {needs}: {why}")


def _prefill_bound_s(run: Run) -> float | None:
    """Return the time of a prompt's matrix products at peak: 2 FLOP a weight and token, embeddings left out [s]."""
    model, hardware, gpus = _model(run.model), _hardware(run.gpu), _gpu_count(run)
    if model is None or hardware is None or not gpus or not run.input_len:
        return None
    weights = model.active_params - model.params_of("embeddings") - model.params_of("head")
    return 2 * weights * run.input_len / (max(hardware.peak_flops.values()) * gpus)


def check_physics(run: Run) -> Flag | None:
    """Flag steps that are faster than reading the weights that one token passes."""
    bound_s, tpot_s = _weights_bound_s(run), run.typical("tpot")
    if bound_s is None or tpot_s is None or tpot_s >= PHYSICS_MARGIN * bound_s:
        return None
    shown = f"TPOT is {format_seconds(tpot_s)}, but reading the weights takes {format_seconds(bound_s)} on {_gpus(run)}"
    return Flag("physics", f"{shown}: GPU count, weight type or unit is wrong, or tokens were speculated; do not fit")


def _weights_bound_s(run: Run) -> float | None:
    """Return the time to read the weights that each token passes at peak bandwidth, spread over all GPUs [s]."""
    model, hardware, gpus = _model(run.model), _hardware(run.gpu), _gpu_count(run)
    if model is None or hardware is None or not gpus:
        return None
    unread = 0 if model.tied_embeddings else model.params_of("embeddings")
    size = _bytes_per_weight(run.weight_dtype, model)
    return None if size is None else (model.active_params - unread) * size / (hardware.memory_bytes_per_s * gpus)


def _bytes_per_weight(dtype: str | None, model: Model) -> float | None:
    """Return the stored size of a weight: the checkpoint's if no type is named, None for an unknown one [B]."""
    if dtype is None:
        return model.weight_bytes() / model.params
    name = dtype.casefold()
    bits = BITS_PER_WEIGHT.get(_WEIGHT_NAMES.get(name, name))
    return None if bits is None else bits / 8


def _gpu_count(run: Run) -> int | None:
    return run.n_gpus or (run.tp * (run.pp or 1) if run.tp else None)


@functools.cache
def _model(name: str | None) -> Model | None:
    # A name from a benchmark file must not make this program open a path.
    if not name or _FILE_NAME.search(name):
        return None
    try:
        return load_model(name)
    except (SimError, OSError):
        return None


@functools.cache
def _hardware(name: str | None) -> Hardware | None:
    if not name or _FILE_NAME.search(name):
        return None
    for candidate in (name, re.sub(r"(?i)^nvidia[ -]|geforce[ -]", "", name)):
        try:
            return load_hardware(candidate)
        except (SimError, OSError):
            continue
    return None


def _gpus(run: Run) -> str:
    return f"{_gpu_count(run)} x {run.gpu}"


CHECKS: tuple[Callable[[Run], Flag | None], ...] = (
    check_failures,
    check_littles_law,
    check_tpot,
    check_few_requests,
    check_warm_up,
    check_client_cap,
    check_offered_rate,
    check_speculation,
    check_prefix_hits,
    check_physics,
)
