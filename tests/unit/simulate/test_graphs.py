"""Captured graphs by their limits: whose hold, what a batch beyond them costs, and who has none."""

import pytest
from overridden import overridden

from sim.batch import Batch, Chunk
from sim.cost.host import Host, Launches
from sim.errors import ConfigError
from sim.profiles.library import load_engine, load_hardware
from sim.simulate import prepare, simulate

TEXT = """
model: Qwen/Qwen3-0.6B
deployment: {gpu: RTX-5090}
engine: {kind: sglang, max_model_len: 4096}
workload:
  arrivals: {kind: closed_loop, concurrency: 60}
  lengths: {kind: fixed, input_tokens: 100, output_tokens: 50}
  num_requests: 120
"""


def experiment(*overrides):
    return overridden(TEXT, *overrides)


def decodes(number, padding=0):
    return Batch(decodes=number, decode_context_tokens=100 * number, sampled=number, padding=padding)


def test_only_decodes_beyond_the_limit_are_launched():
    host = Host(1e-3, 0.0, 0.0, overlapped=False, launches=Launches(48, 5e-3))
    assert host.seconds(decodes(48)) == (0.0, 1e-3)
    assert host.seconds(decodes(49)) == (5e-3, 1e-3)
    assert host.seconds(decodes(40, padding=9)) == (5e-3, 1e-3)
    prompts = Batch((Chunk(0, 100),), decodes=60, decode_context_tokens=6000, sampled=61)
    assert host.seconds(prompts) == (0.0, 1e-3)
    assert host.exposed_s(decodes(49), 2e-3) == pytest.approx(3e-3 + 1e-3)
    assert host.exposed_s(decodes(49), 8e-3) == pytest.approx(1e-3), "hidden behind the GPU"


def test_without_graphs_everything_is_launched():
    host = Host(1e-3, 0.0, 0.0, overlapped=True, launches=Launches(0, 5e-3, eager=True))
    for batch in (decodes(1), Batch((Chunk(0, 100),), sampled=1)):
        assert host.seconds(batch) == (6e-3, 0.0)


def test_sglang_captures_by_memory_and_ranks():
    graphs, gpus = load_engine("sglang").at("0.5.23").graphs, ("RTX-5090", "H100-SXM-80GB")
    sizes = {gpu: [graphs.largest_on(load_hardware(gpu), tp, 2048) for tp in (1, 8)] for gpu in gpus}
    assert sizes == {"RTX-5090": [48, 160], "H100-SXM-80GB": [256, 512]}


def test_vllm_captures_no_more_than_twice_what_may_decode():
    graphs, h100 = load_engine("vllm").at("0.19").graphs, load_hardware("H100-SXM-80GB")
    assert [graphs.largest_on(h100, 1, tokens) for tokens in (8, 128, 256, 1024)] == [16, 256, 512, 512]


def test_sizes_that_count_tokens_hold_fewer_sequences_with_drafts():
    drafts = 'engine.speculative={"kind": "ngram", "num_speculative_tokens": 3, "acceptance": 0.5}'
    vllm = ("engine.kind=vllm", "engine.version='0.11'")
    assert prepare(experiment(*vllm)).engine.cost.host.launches.largest == 512
    assert prepare(experiment(*vllm, drafts)).engine.cost.host.launches.largest == 128
    assert prepare(experiment(drafts)).engine.cost.host.launches.largest == 48, "SGLang counts sequences"
    few = prepare(experiment(*vllm, drafts, "engine.max_captured_batch=3")).engine.cost.host.launches
    assert (few.largest, few.seconds(decodes(1)) > 0, few.seconds(Batch((Chunk(0, 3),), sampled=1))) == (0, True, 0.0)


def test_a_batch_beyond_the_graphs_is_slower_and_needs_less_memory():
    few, many = (experiment(f"engine.max_captured_batch={size}") for size in (8, 64))
    slow, fast = (simulate(each).summary.as_dict()["median_tpot_ms"] for each in (few, many))
    assert slow > 1.5 * fast
    assert prepare(few).memory.num_blocks > prepare(many).memory.num_blocks
    vllm = ("engine.kind=vllm", "engine.version='0.23'")
    eager = prepare(experiment(*vllm, "engine.max_captured_batch=0")).memory
    assert eager.cuda_graph_bytes == 0 < prepare(experiment(*vllm)).memory.cuda_graph_bytes


def test_an_engine_without_graphs_has_no_limit():
    with pytest.raises(ConfigError, match="engine.max_captured_batch: llama-cpp 0 captures no graphs"):
        prepare(experiment("engine.kind=llama-cpp", "engine.max_captured_batch=8"))


def test_flags_stand_for_it():
    eager = experiment("engine.kind=vllm", "engine.flags=--enforce-eager")
    assert eager.engine.max_captured_batch == 0
    assert experiment("engine.flags=--cuda-graph-max-bs-decode 96").engine.max_captured_batch == 96


@pytest.mark.parametrize("written", ["max_captured_batch=8", "captured_batches=[1, 8]"])
def test_a_cost_model_without_host_says_that_it_has_no_effect(written):
    run = simulate(experiment('cost_model={"kind": "affine", "base_s": 0.01}', f"engine.{written}"))
    said = [warning for warning in run.summary.warnings if "takes memory only" in warning]
    name = written.partition("=")[0]
    assert said == [f"engine.{name} takes memory only: the affine cost model knows no host"]


def test_all_captured_batches_may_be_listed():
    cost = prepare(experiment("engine.captured_batches=[24, 4, 1]")).engine.cost
    assert (cost.padding.sizes, cost.host.launches.largest) == ((1, 4, 24), 24)
    with pytest.raises(ConfigError, match="engine.captured_batches: the largest is 24, and max_captured_batch 8"):
        prepare(experiment("engine.captured_batches=[24, 4, 1]", "engine.max_captured_batch=8"))
    with pytest.raises(ConfigError, match="engine.captured_batches: llama-cpp 0 captures no graphs"):
        prepare(experiment("engine.kind=llama-cpp", "engine.captured_batches=[8]"))
