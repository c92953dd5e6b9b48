"""Batches that run as the next captured graph: which, and what its rows cost."""

from dataclasses import replace

import pytest
from overridden import overridden
from round_numbers import decoding, dense, model, step_of

from sim.batch import Batch, Chunk
from sim.cost.operation import Work
from sim.cost.padding import GraphPadding
from sim.errors import ConfigError
from sim.profiles.layers import GroupedAttention, Layers, MoeMlp
from sim.profiles.library import load_engine
from sim.simulate import prepare, simulate

TOKENS = GraphPadding((1, 2, 4, 8, 16), prompts=True)
SEQUENCES = GraphPadding((1, 2, 4, 8, 16), of_sequences=True, head=True)
MIXTURE = model(
    Layers(
        count=2,
        attention=GroupedAttention(heads=16, kv_heads=8, head_dim=64),
        mlp=MoeMlp(experts=64, top_k=4, expert_intermediate=512),
    )
)
TEXT = """
model: Qwen/Qwen3-0.6B
deployment: {gpu: RTX-5090}
engine: {version: "0.15", max_model_len: 4096}
workload:
  arrivals: {kind: poisson, rate: 40}
  lengths: {kind: uniform, input_tokens: {low: 50, high: 400}, output_tokens: {low: 5, high: 90}}
  num_requests: 200
"""


@pytest.mark.parametrize(
    ("padding", "batch", "tokens", "sampled"),
    [
        (TOKENS, decoding(9, 100), 16, 9),
        (TOKENS, decoding(8, 100), 8, 8),
        (TOKENS, decoding(17, 100), 17, 17),
        (TOKENS, Batch((Chunk(5, 0),), 4, 400, sampled=5), 16, 5),
        (SEQUENCES, Batch((Chunk(5, 0),), 4, 400, sampled=5), 9, 5),
        (SEQUENCES, decoding(5, 100), 8, 8),
        (SEQUENCES, Batch((), 5, 500, sampled=15, tokens_each=3), 24, 24),
        (TOKENS, Batch((), 5, 500, sampled=15, tokens_each=3), 16, 15),
    ],
    ids=["next", "captured", "beyond", "prompts", "no prompts", "head", "drafts by sequences", "drafts by tokens"],
)
def test_the_rows_of_a_batch(padding, batch, tokens, sampled):
    padded = padding.padded(Work.of(batch))
    assert (padded.tokens, padded.sampled) == (tokens, sampled)
    attended = (padded.decodes, padded.decode_context_tokens)
    assert attended == (batch.decodes, batch.decode_context_tokens)


def test_products_cost_as_the_captured_batch_and_attention_as_the_own_one():
    plain = step_of(dense(layers=1))
    padded, nine, sixteen = replace(plain, padding=TOKENS), decoding(9, 1000), decoding(16, 1000)
    own, full, found = plain.breakdown(nine), plain.breakdown(sixteen), padded.breakdown(nine)
    assert {name for name in found if found[name] == full[name] != own[name]} == {
        "attention_gemm", "mlp_gemm", "elementwise"
    }  # fmt: skip
    assert all(found[name] == own[name] for name in ("attention_decode", "head", "sampling"))
    assert sum(found.values()) == pytest.approx(padded.pace(nine).first_s, rel=1e-12)
    assert padded.pace(nine).growth_s == plain.pace(nine).growth_s


def test_rows_that_are_masked_reach_no_expert():
    steps = {
        experts: step_of(MIXTURE, padding=replace(TOKENS, experts=experts)).breakdown(decoding(9, 1000))
        for experts in (True, False)
    }
    own, full = (step_of(MIXTURE).breakdown(decoding(number, 1000)) for number in (9, 16))
    assert steps[True]["experts"] == full["experts"] > own["experts"] == steps[False]["experts"]
    assert steps[True]["router"] == steps[False]["router"] == full["router"]


def test_sizes_are_those_of_the_engines():
    def sizes(engine, version, largest, *, drafts=False):
        return load_engine(engine).at(version).graphs.sizes.up_to(largest, drafts=drafts)

    assert sizes("vllm", "0.6", 256) == (1, 2, 4, *range(8, 257, 8))
    assert sizes("vllm", "0.11", 512) == (1, 2, 4, *range(8, 513, 8))
    assert sizes("vllm", "0.19", 512) == (1, 2, 4, *range(8, 256, 8), *range(256, 513, 16))
    assert sizes("sglang", "0.5.23", 512) == (1, 2, 4, 8, 12, *range(16, 257, 8), *range(272, 513, 16))
    assert sizes("sglang", "0.5.23", 48, drafts=True) == (*range(1, 9), *range(10, 33, 2), *range(36, 49, 4))
    assert sizes("tensorrt-llm", "1.2", 256) == (1, 2, 4, *range(8, 129, 8), 192, 256)
    assert sizes("tgi", "2.0", 32) == (1, 2, 4, 8, 16, 32)
    assert sizes("vllm", "0.19", 50) == (1, 2, 4, 8, 16, 24, 32, 40, 48, 50)


def test_padding_costs_time_in_strides_as_in_single_iterations():
    def times(*overrides):
        return simulate(overridden(TEXT, *overrides)).requests.last_token_s

    padded, single, plain = times(), times("stride=off"), times("engine.graph_padding=false")
    assert padded == pytest.approx(single, rel=1e-9)
    assert sum(padded) > sum(plain)


def test_where_there_are_no_sizes_there_is_no_padding():
    eager = prepare(overridden(TEXT, "engine.max_captured_batch=0")).engine.cost
    assert eager.padding is None
    with pytest.raises(ConfigError, match="engine.graph_padding: llama-cpp 0 fills no batch up"):
        prepare(overridden(TEXT, "engine.kind=llama-cpp", "engine.version=latest", "engine.graph_padding=true"))
