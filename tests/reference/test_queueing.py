"""Waiting times against queueing theory: one server, served in order of arrival.

With room for one sequence and prompts and answers that cost a fixed time, the engine is an M/D/1 queue; with
one-token answers whose prompts cost exponential times, an M/M/1 queue. Mean time in the queue, service time
S, load r (Pollaczek-Khinchine; e.g. Kleinrock, "Queueing Systems", vol. 1, eq. 5.69): W = r S (1 + c^2) / (2
(1 - r)), with c^2 the squared coefficient of variation of the service time: 0 for M/D/1, 1 for M/M/1.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from serving import Ask, Case, serve

from sim.cost import Affine
from sim.metrics.rows import RequestRows
from sim.scheduler.chunked_prefill import ChunkedPrefill
from sim.scheduler.continuous import Continuous
from sim.scheduler.static import Static

CHUNKED = ChunkedPrefill(max_num_seqs=1, max_num_batched_tokens=2**20)
LOADS = (0.3, 0.7, 0.9)
REPLICATIONS, REQUESTS = 16, 2000
TOKENS_OF_SERVICE = 1000  # mean prompt of the M/M/1 queue: its times are multiples of 1/1000 of the mean


def queue_s(scheduler, arrivals_s, input_tokens, output_tokens, cost):
    """Return each request's time from its arrival to the start of its prefill [s]."""
    asks = tuple(
        Ask(arrival_s, tokens, output_tokens)
        for arrival_s, tokens in zip(arrivals_s.tolist(), input_tokens.tolist(), strict=True)
    )
    requests, _ = serve(Case(scheduler, 2**20, 16, asks), cost=cost.build())
    return RequestRows.of(requests).queue_s


def interval_s(waits_s):
    """Return the 99 % confidence interval of the mean from the means of independent replications [s]."""
    means = np.array(waits_s)
    half_s = stats.t.ppf(0.995, len(means) - 1) * means.std(ddof=1) / np.sqrt(len(means))
    return means.mean() - half_s, means.mean() + half_s


def warm(waits_s):
    """Leave out the first tenth, served by a queue that began empty."""
    return waits_s[len(waits_s) // 10 :].mean()


@pytest.mark.parametrize("load", LOADS)
def test_constant_service_is_m_d_1(load):
    # Service: 1 prefill and 4 decodes of 0.2 s each.
    waits_s = []
    for seed in range(REPLICATIONS):
        arrivals_s = np.cumsum(np.random.default_rng(seed).exponential(1 / load, REQUESTS))
        tokens = np.full(REQUESTS, 10)
        waits_s.append(warm(queue_s(CHUNKED, arrivals_s, tokens, 5, Affine(base_s=0.2))))
    low_s, high_s = interval_s(waits_s)
    assert low_s <= load / (2 * (1 - load)) <= high_s


@pytest.mark.parametrize("load", LOADS)
def test_exponential_service_is_m_m_1(load):
    waits_s = []
    for seed in range(REPLICATIONS):
        draw = np.random.default_rng(100 + seed)
        arrivals_s = np.cumsum(draw.exponential(1 / load, REQUESTS))
        tokens = np.ceil(draw.exponential(TOKENS_OF_SERVICE, REQUESTS)).astype(int)
        cost = Affine(per_token_s=1 / (TOKENS_OF_SERVICE + 0.5))  # rounding up adds half a token on average
        waits_s.append(warm(queue_s(CHUNKED, arrivals_s, tokens, 1, cost)))
    low_s, high_s = interval_s(waits_s)
    assert low_s <= load / (1 - load) <= high_s


@pytest.mark.parametrize(
    "scheduler",
    [CHUNKED, Continuous(max_num_seqs=1), Static(batch_size=1)],
    ids=lambda scheduler: scheduler.kind,
)
def test_each_wait_follows_lindleys_recursion(scheduler):
    """Without any statistics: W' = max(0, W + S - gap), from one request to the next."""
    draw = np.random.default_rng(7)
    gaps_s = draw.integers(1, 160, 500) / 64
    expected_s = [0.0]
    for gap_s in gaps_s[1:]:
        expected_s.append(max(0.0, expected_s[-1] + 1.25 - gap_s))
    arrivals_s = np.cumsum(gaps_s)
    waits_s = queue_s(scheduler, arrivals_s, np.full(500, 10), 5, Affine(base_s=0.25))
    assert waits_s.tolist() == expected_s
