"""When output tokens come out: counts by second, without listing the tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.errors import UserError
from sim.metrics.ragged import ragged
from sim.metrics.rows import RequestRows, StrideRows

__all__ = ["peak_concurrency", "peak_tokens_per_s"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_MOST_SECONDS = 2**28
"""Some gigabytes; eight years of one replica that always writes."""


def peak_tokens_per_s(requests: RequestRows, strides: StrideRows) -> float:
    """Return the most output tokens in one second, counted from the first arrival of a completed request.

    `vllm bench serve` counts in the same buckets (`max_output_tokens_per_s` in vllm/benchmarks/serve.py). The
    token that a recomputed prompt emits after a preemption has no time of its own in the rows and is left
    out. Raise a `UserError` for so many seconds that memory would not hold them.
    """
    if not requests.completed.any():
        return 0.0
    origin_s = float(requests.arrival_s[requests.completed].min())
    first_s = requests.first_token_s[~np.isnan(requests.first_token_s)]
    first = _summed(np.floor(first_s - origin_s).astype(np.int64), np.ones(len(first_s)))
    decoded = [_summed(*_decoded_by_second(piece, origin_s)) for piece in strides.pieces()]
    seconds, tokens = zip(first, *decoded, strict=True)
    return float(_summed(np.concatenate(seconds), np.concatenate(tokens))[1].max(initial=0.0))


def peak_concurrency(requests: RequestRows) -> int:
    """Return the most completed requests in flight at once, each from its arrival up to its last token.

    As `max_concurrent_requests` of `vllm bench serve`: one that ends as another arrives does not overlap it.
    """
    arrival_s = np.sort(requests.arrival_s[requests.completed])
    end_s = np.sort(requests.last_token_s[requests.completed])
    in_flight = np.arange(1, len(arrival_s) + 1) - np.searchsorted(end_s, arrival_s, side="right")
    return int(in_flight.max(initial=0))


def _summed(second: Ints, tokens: Floats) -> tuple[Ints, Floats]:
    """Return each *second* once, and the sum of its *tokens*."""
    seconds, bucket = np.unique(second, return_inverse=True)
    return seconds, np.asarray(np.bincount(bucket, tokens), dtype=np.float64)


def _decoded_by_second(strides: StrideRows, origin_s: float) -> tuple[Ints, Floats]:
    """Return seconds since *origin_s* and the tokens decoded in them; a second can occur many times."""
    some = strides.decodes > 0
    clock = _Clock(strides.start_s[some] - origin_s, strides.first_s[some], strides.growth_s[some])
    iterations = strides.iterations[some]
    emitted = strides.emitted[some] / iterations  # in each of them
    every = np.arange(len(iterations))
    first = np.floor(clock.end_s(every, np.ones_like(iterations))).astype(np.int64)
    spanned = np.floor(clock.end_s(every, iterations)).astype(np.int64) - first + 1

    _refuse_endless(np.minimum(iterations, spanned))
    few = iterations <= spanned
    stride, j = ragged(np.where(few, iterations, 0))
    single = np.floor(clock.end_s(stride, j + 1)).astype(np.int64)

    many, step = ragged(np.where(few, 0, spanned))
    second = first[many] + step
    ended = np.where(step == spanned[many] - 1, iterations[many], clock.ended_before(many, second + 1.0))
    terms = ended - np.where(step == 0, 0, np.roll(ended, 1))
    return (
        np.concatenate([single, second]),
        np.concatenate([emitted[stride], emitted[many] * terms]),
    )


def _refuse_endless(seconds: Ints) -> None:
    """Raise a `UserError` where the *seconds* in which strides emit are more than memory would hold."""
    if (total := float(seconds.sum(dtype=np.float64))) > _MOST_SECONDS:
        message = f"answers take {total:,.0f} s of the replicas' time to write: at most {_MOST_SECONDS:,} are counted"
        raise UserError(message)


class _Clock:
    """When iteration m of a stride ends, from 1: ``start + m * first + growth * m * (m - 1) / 2`` [s]."""

    def __init__(self, start_s: Floats, first_s: Floats, growth_s: Floats) -> None:
        self.start_s, self.first_s, self.growth_s = start_s, first_s, growth_s

    def end_s(self, stride: Ints, m: Ints) -> Floats:
        return self.start_s[stride] + m * self.first_s[stride] + self.growth_s[stride] * (m * (m - 1) / 2)

    def ended_before(self, stride: Ints, time_s: NDArray[Any]) -> Ints:
        """Return how many iterations end before *time_s*, from the root of the quadratic, then made exact."""
        linear = self.first_s[stride] - self.growth_s[stride] / 2
        left_s = time_s - self.start_s[stride]
        with np.errstate(divide="ignore", invalid="ignore"):
            root = 2 * left_s / (linear + np.sqrt(linear**2 + 2 * self.growth_s[stride] * left_s))
        count: Ints = np.nan_to_num(np.ceil(root) - 1, posinf=0, neginf=0).astype(np.int64)
        count += self.end_s(stride, count + 1) < time_s
        count -= (count > 0) & (self.end_s(stride, count) >= time_s)
        return count
