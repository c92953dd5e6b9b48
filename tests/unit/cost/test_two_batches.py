"""Halves of a batch that overlap: the schedule by hand, its closed form, and who splits."""

import math
from dataclasses import replace

import numpy as np
import pytest

from sim.batch import Batch, Chunk
from sim.cost.two_batches import halves
from sim.errors import UserError
from sim.experiment import experiment_of
from sim.simulate import play, prepare, ready_pools
from sim.yamlfile import parse_yaml

QWEN = """
model: {model}
deployment: {{gpu: H100-SXM-80GB, parallelism: {{tp: 1, dp: 16, ep: 16}}}}
engine: {{kind: {kind}, max_model_len: 16384, num_gpu_blocks_override: 30000{flags}}}
stride: {stride}
workload:
  num_requests: {requests}
  arrivals: {{kind: offline}}
  lengths: {{kind: lognormal, input_tokens: {{median: 200, p90: 800}}, output_tokens: {{median: 50, p90: 200}}}}
"""
LOW = ", all_to_all: {mode: low_latency}"
THROUGHPUT = ", all_to_all: {mode: high_throughput}"
DBO = ", enable_dbo: true"
SIXTEEN_RANKS = 16


def _experiment(flags, model="Qwen/Qwen3-30B-A3B", kind="vllm", stride="on", requests=10):
    text = QWEN.format(model=model, kind=kind, flags=flags, stride=stride, requests=requests)
    return experiment_of(parse_yaml(text, "x.yaml"))


def _cost(flags, **options):
    return prepare(_experiment(flags, **options)).engine.cost


def _decodes(number, context=1000):
    return Batch(decodes=number, decode_context_tokens=number * context, sampled=number)


def test_halves_are_cut_in_the_middle_of_the_tokens():
    first, second = halves(
        Batch(decodes=10, decode_context_tokens=100, chunks=(Chunk(20, 0), Chunk(70, 5)), sampled=12)
    )
    assert (first.decodes, first.chunks) == (10, (Chunk(20, 0), Chunk(20, 5)))
    assert (second.decodes, second.chunks) == (0, (Chunk(50, 25),))
    assert (first.tokens, second.tokens) == (50, 50)
    first, second = halves(_decodes(5, 30))
    assert [(half.decodes, half.decode_context_tokens) for half in (first, second)] == [(2, 60), (3, 90)]


def test_the_schedule_by_hand():
    """48 equal layers: the four lines of the schedule from what a whole batch of half the size takes."""
    whole, split = _cost(LOW), _cost(LOW + DBO)
    half = whole.breakdown(_decodes(64))
    attention = sum(half[name] for name in ("attention_gemm", "attention_decode", "elementwise", "router"))
    # H100 on two nodes (profiles/calibrated/all_to_all): 64 tokens, 8 experts each, half of them on the other node.
    token_bytes, network = 64 * 8 / 2 * 2048 * 2, 50e9
    there_s, back_s = 48 * (19.63e-6 + token_bytes / 0.9056 / network), 48 * (24.84e-6 + token_bytes / 0.9266 / network)
    lines = (
        (attention + 48 * 19.63e-6, there_s),
        (half["experts"] + 48 * 19.63e-6, there_s),
        (half["experts"] + 48 * 24.84e-6, back_s),
        (attention + 48 * 24.84e-6, back_s),
    )
    taken = split.gpu_s(_decodes(128))
    head_s = sum(whole.breakdown(_decodes(128))[name] for name in ("head", "sampling"))
    assert taken == pytest.approx(sum(max(line) + 0.15 * min(line) for line in lines) + head_s, rel=1e-3)
    shown = split.breakdown(_decodes(128))
    assert sum(shown.values()) == pytest.approx(split.pace(_decodes(128)).first_s)
    assert shown["experts"] == pytest.approx(2 * half["experts"])
    assert shown["expert_exchange"] < whole.breakdown(_decodes(128))["expert_exchange"]


def test_throughput_kernels_keep_twenty_processors():
    """Where nothing is waited for, that is what shows of an exchange, and the 15 % by which it slows what computes."""
    batch = Batch(chunks=(Chunk(16_384, 0),) * 2, sampled=2)
    whole, split = _cost(THROUGHPUT), _cost(THROUGHPUT + DBO)
    shown = split.breakdown(batch)
    half = replace(batch, chunks=batch.chunks[:1], sampled=1)
    exchange_s = 2 * whole.breakdown(half)["expert_exchange"]
    assert shown["expert_exchange"] == pytest.approx((20 / 132 + 0.15) * exchange_s, rel=1e-6)
    assert split.pace(batch).first_s < whole.pace(batch).first_s


@pytest.mark.parametrize("number", [500, 511])
def test_the_pace_is_that_of_every_iteration(number):
    split = _cost(LOW + DBO)
    batch = _decodes(number, 10)
    kinks = 0
    for _ in range(4):
        pace = split.pace(batch)
        for iteration in np.unique(np.linspace(0, min(pace.iterations, 100_000) - 1, 7).astype(int)).tolist():
            later = replace(batch, decode_context_tokens=batch.decode_context_tokens + iteration * number)
            expected = split.pace(later).first_s
            assert pace.first_s + iteration * pace.growth_s == pytest.approx(expected, rel=1e-9)
            assert split.durations_s(batch, np.array([later.decode_context_tokens]), ())[0] == pytest.approx(expected)
        if math.isinf(pace.iterations):
            break
        kinks += 1
        batch = replace(batch, decode_context_tokens=batch.decode_context_tokens + int(pace.iterations) * number)
    assert kinks, "attention is shorter than the exchange at first"


def test_strides_and_single_iterations_agree():
    both = []
    for stride in ("on", "off"):
        experiment = _experiment(LOW + DBO + ", dbo_decode_token_threshold: 4", stride=stride, requests=200)
        _, requests, strides, *_ = play(experiment, ready_pools(experiment))
        both.append((requests, len(strides.start_s)))
    (strided, fewer), (stepped, more) = both
    assert fewer < more
    assert strided.last_token_s == pytest.approx(stepped.last_token_s, rel=1e-9)


def test_small_batches_and_idle_ranks_keep_batches_whole():
    whole, split = _cost(LOW), _cost(LOW + DBO)
    assert split.pace(_decodes(31)) == whole.pace(_decodes(31))
    assert split.pace(_decodes(32)).first_s > whole.pace(_decodes(32)).first_s  # too few to gain
    assert split.pace(replace(_decodes(32), whole=True)) == whole.pace(_decodes(32))
    prompt = Batch(chunks=(Chunk(511, 0),), sampled=1)
    assert split.pace(prompt) == whole.pace(prompt)
    ends = []
    any_size = ", dbo_decode_token_threshold: 2, dbo_prefill_token_threshold: 2"
    for flags in (LOW, LOW + DBO + any_size):
        experiment = _experiment(flags, requests=SIXTEEN_RANKS - 1)  # so one rank is idle
        _, requests, *_ = play(experiment, ready_pools(experiment))
        ends.append(requests.last_token_s)
    assert ends[0].tolist() == ends[1].tolist()


def test_sglang_splits_what_it_can():
    cost = _cost(LOW + ", enable_two_batch_overlap: true", kind="sglang")
    assert cost.splits(_decodes(2))
    assert not cost.splits(_decodes(1))


def test_dense_layers_run_one_half_after_the_other():
    """DeepSeek-V3 has three of them: their share of the products doubles its launches, and hides nothing."""
    cost = _cost(LOW + DBO, model="deepseek-ai/DeepSeek-V3")
    shown = cost.breakdown(_decodes(128))
    assert sum(shown.values()) == pytest.approx(cost.pace(_decodes(128)).first_s)
    assert [sum(each.repeats for each in cost.two_batches.rest.decode), len(cost.two_batches.mixtures)] == [3, 1]


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (DBO, "engine.enable_dbo: needs deployment.parallelism.dp above 1, and engine.all_to_all"),
        (LOW + ", enable_two_batch_overlap: true", "vllm has no such flag; its own is enable_dbo"),
        (LOW + ", dbo_decode_token_threshold: 64", "dbo_decode_token_threshold: is of no use without enable_dbo"),
    ],
)
def test_what_cannot_be(flags, reason):
    with pytest.raises(UserError) as caught:
        _cost(flags)
    assert reason in str(caught.value)
