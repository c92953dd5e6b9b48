"""The link between prefill and decode replicas against queueing theory: prompts that cost next to nothing, one port."""

import math

import numpy as np
import pytest
from serving import Case

from sim.cluster import Cluster, Pool, Port
from sim.cost import Affine
from sim.memory.footprint import KvFootprint
from sim.request import Request
from sim.router.disaggregation import Disaggregation
from sim.router.round_robin import RoundRobin
from sim.scheduler.chunked_prefill import ChunkedPrefill
from sim.workload.traffic import Traffic

FAST = Affine(base_s=1e-9).build()
REQUESTS = 8_000
OPTIONS = Disaggregation(first_token="prefill", order="prefill_first", latency_s=0.0)


def exposed_s(prompts, load, *, replicas=(1, 8), seed=0):
    """Return what each request waits for its KV; a token takes 1 ms, and *load* is the share that the port is busy."""
    gaps_s = np.random.default_rng(seed).exponential(prompts.mean() * 1e-3 / load, REQUESTS)
    asks = zip(prompts.tolist(), np.cumsum(gaps_s).tolist(), strict=True)
    requests = [Request(index, tokens, 2, at_s) for index, (tokens, at_s) in enumerate(asks)]
    engine = Case(ChunkedPrefill(max_num_batched_tokens=10**9, max_num_seqs=10**6), 10**9, 1, ()).engine(cost=FAST)
    port = Port(KvFootprint(1, 1, ((None, 1.0),)), 1e3)
    pools = [Pool(engine, replicas[0], role="prefill", port=port), Pool(engine, replicas[1], role="decode", port=port)]
    cluster = Cluster(pools, RoundRobin(), Traffic(requests), disaggregation=OPTIONS)
    cluster.run()
    return cluster.transfers().exposed_s


def mean_and_error(waits_s):
    """Return the mean, and its standard error from 20 batches."""
    batches = waits_s.reshape(20, -1).mean(axis=1)
    return waits_s.mean(), batches.std(ddof=1) / math.sqrt(20)


@pytest.mark.parametrize("load", [0.3, 0.7])
def test_equal_prompts_wait_as_in_m_d_1(load):
    mean_s, error_s = mean_and_error(exposed_s(np.full(REQUESTS, 100), load))
    assert mean_s == pytest.approx(0.1 + 0.1 * load / (2 * (1 - load)), abs=3 * error_s)


def test_unequal_prompts_wait_as_in_m_g_1():
    prompts = np.random.default_rng(1).choice([20, 380], REQUESTS, p=[0.5, 0.5])
    mean_s, error_s = mean_and_error(exposed_s(prompts, 0.6))
    service_s = prompts * 1e-3  # Pollaczek and Khinchine
    wait_s = 0.6 * (service_s**2).mean() / (2 * service_s.mean() * (1 - 0.6))
    assert mean_s == pytest.approx(service_s.mean() + wait_s, abs=3 * error_s)


def test_one_receiver_of_many_senders_is_the_same_queue():
    prompts = np.full(REQUESTS, 100)
    assert exposed_s(prompts, 0.7, replicas=(8, 1)).mean() == pytest.approx(
        exposed_s(prompts, 0.7, replicas=(1, 8)).mean(), rel=0.05
    )
