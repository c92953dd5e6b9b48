"""Attention ranks in lockstep."""

import math

import numpy as np
import pytest

from sim.cluster.lockstep import slowest
from sim.cost import Pace
from sim.experiment import experiment_of
from sim.simulate import play, ready_pools
from sim.yamlfile import parse_yaml

EXPERIMENT = """
model: Qwen/Qwen3-30B-A3B
deployment: {{gpu: H100-SXM-80GB, replicas: {replicas}, parallelism: {{tp: 1, dp: {dp}, ep: {dp}}}}}
engine:
  version: "0.19"
  max_model_len: 4096
  num_gpu_blocks_override: 200
  scheduler: {{kind: {kind}, max_num_batched_tokens: 512, max_num_seqs: 16}}
cost_model: {cost}
stride: {stride}
workload:
  num_requests: {requests}
  arrivals: {arrivals}
  lengths: {lengths}
"""
EXACT = "{kind: affine, base_s: 0.0078125, per_token_s: 0.0009765625, per_context_token_s: 0.0009765625}"
MIXED = "{kind: lognormal, input_tokens: {median: 200, p90: 800}, output_tokens: {median: 50, p90: 200}}"


def _play(**options):
    chosen = {
        "replicas": 1,
        "dp": 4,
        "kind": "chunked_prefill",
        "cost": EXACT,
        "stride": "on",
        "requests": 150,
        "arrivals": "{kind: poisson, rate: 10}",
        "lengths": MIXED,
    } | options
    experiment = experiment_of(parse_yaml(EXPERIMENT.format(**chosen), "x.yaml"))
    _, requests, strides, *_ = play(experiment, ready_pools(experiment))
    return requests, strides


@pytest.mark.parametrize("kind", ["chunked_prefill", "continuous"])
@pytest.mark.parametrize("cost", [EXACT, "{kind: roofline}"], ids=["exact", "roofline"])
def test_strides_and_single_iterations_agree(kind, cost):
    strided, stepped = (_play(kind=kind, cost=cost, stride=stride) for stride in ("on", "off"))
    for name in ("first_token_s", "last_token_s"):
        assert getattr(strided[0], name) == pytest.approx(getattr(stepped[0], name), rel=1e-9)
    assert len(strided[1].start_s) < len(stepped[1].start_s)


def test_an_iteration_lasts_as_long_as_that_of_the_slowest():
    """Three equal requests on two ranks, by hand: time = 1/8 + context/1024, prompts of 256 and answers of 2 tokens.

    The rank with two of them prefills 512 tokens, then decodes with a context of 514; the other waits for it.
    """
    cost = "{kind: affine, base_s: 0.125, per_token_s: 0, per_context_token_s: 0.0009765625}"
    lengths = "{kind: fixed, input_tokens: 256, output_tokens: 2}"
    requests, _ = _play(dp=2, cost=cost, requests=3, arrivals="{kind: offline}", lengths=lengths)
    assert requests.first_token_s.tolist() == [0.125 + 512 / 1024] * 3
    assert requests.last_token_s.tolist() == [0.25 + (512 + 514) / 1024] * 3


def test_a_busy_rank_delays_the_others():
    """A prompt that arrives on one rank makes the decode of the other wait."""
    equal = {"arrivals": "{kind: offline}", "lengths": "{kind: fixed, input_tokens: 16, output_tokens: 50}"}
    alone, _ = _play(dp=2, requests=1, **equal)
    both, strides = _play(dp=2, requests=2, **equal)
    assert both.last_token_s.tolist() == alone.last_token_s.tolist() * 2  # equal ranks do not
    assert sorted(set(strides.replica)) == [0, 1]
    skewed, _ = _play(dp=2, requests=40)
    single, _ = _play(dp=1, replicas=2, requests=40)
    assert np.mean(skewed.last_token_s - skewed.first_token_s) > np.mean(single.last_token_s - single.first_token_s)


def test_replicas_of_ranks_are_independent():
    requests, strides = _play(replicas=2, dp=2)
    assert set(requests.replica) == {0, 1, 2, 3}
    starts = [set(strides.start_s[strides.replica == rank]) for rank in range(4)]
    assert len(starts[0] & starts[1]) > len(starts[0]) / 2
    assert len(starts[0] & starts[2]) < len(starts[0]) / 10


def test_the_envelope_of_paces():
    flat, steep = Pace(10.0, 0.0, math.inf), Pace(4.0, 2.0, math.inf)
    assert slowest([flat, steep]) == Pace(10.0, 0.0, 4)  # 4, 6, 8, 10: from the fifth on the other one is slower
    assert slowest([flat, Pace(10.0, 1.0, 7)]) == Pace(10.0, 1.0, 7)
    assert slowest([steep]) == steep


def _inflight(patience, **options):
    held = "" if patience is None else f", attention_dp_timeout_iters: {patience}"
    return _play(kind=f"inflight{held}", **options)


def test_prompts_wait_until_every_attention_rank_has_some():
    """By hand, 1 s an iteration: both ranks decode from 1 s on; one gets a prompt at 1.5 s, the other at 3.5 s."""
    cost = "{kind: affine, base_s: 1}"
    arrivals = "{kind: constant, rate: 1}"
    lengths = "{kind: fixed, input_tokens: 16, output_tokens: 30}"
    options = {"dp": 2, "cost": cost, "arrivals": arrivals, "lengths": lengths, "requests": 4}
    at_once, _ = _inflight(None, **options)
    both, _ = _inflight(20, **options)
    alone, _ = _inflight(3, **options)
    # Arrivals at 0, 1, 2 and 3 s go to ranks 0, 1, 0, 1. The second finds a rank without answers: it does not wait.
    assert at_once.first_token_s.tolist() == [1, 2, 3, 4]
    assert both.first_token_s.tolist() == [1, 2, 4, 4]
    assert alone.first_token_s.tolist() == [1, 2, 4, 4]


def test_nobody_waits_for_longer_than_the_patience():
    """One rank has answers of its own but no prompts: the other's prompt waits for three iterations at most."""
    cost, lengths = "{kind: affine, base_s: 1}", "{kind: fixed, input_tokens: 16, output_tokens: 40}"
    options = {"dp": 2, "cost": cost, "arrivals": "{kind: constant, rate: 0.1}", "lengths": lengths, "requests": 3}
    at_once, _ = _inflight(None, **options)
    held, _ = _inflight(7, **options)
    waits = held.first_token_s - at_once.first_token_s
    assert waits[:2].tolist() == [0, 0]
    assert 0 < waits[2] < 7


@pytest.mark.parametrize("patience", [3, 20])
def test_strides_hold_prompts_as_single_iterations_do(patience):
    short = "{kind: lognormal, input_tokens: {median: 100, p90: 200}, output_tokens: {median: 50, p90: 200}}"
    strided, stepped = (_inflight(patience, stride=stride, dp=3, lengths=short) for stride in ("on", "off"))
    for name in ("first_token_s", "last_token_s"):
        assert getattr(strided[0], name) == pytest.approx(getattr(stepped[0], name), rel=1e-9, nan_ok=True)
    assert len(strided[1].start_s) < len(stepped[1].start_s)
