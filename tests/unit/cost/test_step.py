"""Iterations of whole models: what they consist of, what hides, and where a pace ends."""

import math

import pytest
from round_numbers import ROUND, decoding, dense, engine, model, prompts, step_of

from sim.batch import Batch, Chunk
from sim.cost import Roofline
from sim.errors import ConfigError, ProfileError
from sim.profiles.layers import (
    DenseMlp,
    GroupedAttention,
    Indexer,
    LatentAttention,
    Layers,
    LinearAttention,
    MoeMlp,
    NoMlp,
)
from sim.profiles.quantization import Quantization

MOE = MoeMlp(experts=64, top_k=4, expert_intermediate=512, shared_intermediate=1024)
GQA = GroupedAttention(heads=16, kv_heads=8, head_dim=64)


def test_one_dense_layer_on_one_accelerator():
    # 8 decodes of 1000 tokens; h 1024, 16 query and 8 KV heads of 64, MLP 4096, vocabulary 32000.
    def product(rows, k, n):
        moved = 2 * n * k + 2 * rows * (n + k)
        return 2 * rows * n * k / 5e14 + moved / 5e11 + k * 3.2768e-12 + 1e-6

    seconds = step_of(dense(layers=1)).breakdown(decoding(8, 1000))
    assert seconds == pytest.approx(
        {
            "attention_gemm": product(8, 1024, 2048) + product(8, 1024, 1024),
            "mlp_gemm": product(8, 1024, 8192) + product(8, 4096, 1024),
            "attention_decode": 8000 * 2 * 8 * 128 / 5e11 + 8 * 8 * 1e-8 + 1e-5,
            "elementwise": 8 * 2 * (8 * 1024 + 6 * 1024 + 3 * 4096) / 8e11 + 3 * 3e-6,
            "head": product(8, 1024, 32000),
            "sampling": 8 * 10 * 32000 / 8e11 + 2 * 3e-6,
        },
        rel=1e-6,
    )


def test_a_mixed_iteration_fuses_its_tokens_in_one_product():
    step = step_of()
    mixed = Batch(chunks=(Chunk(500, 0),), decodes=12, decode_context_tokens=12_000, sampled=13)
    alone = step.breakdown(prompts((500, 0)))["mlp_gemm"] + step.breakdown(decoding(12, 1000))["mlp_gemm"]
    assert step.breakdown(mixed)["mlp_gemm"] < 0.7 * alone
    assert step.breakdown(mixed)["mlp_gemm"] == step.breakdown(prompts((512, 0)))["mlp_gemm"]


def test_a_chunk_that_does_not_end_its_prompt_samples_nothing():
    seconds = step_of().breakdown(Batch(chunks=(Chunk(500, 0),), sampled=0))
    assert "head" not in seconds
    assert "attention_decode" not in seconds


def test_tensor_parallelism_splits_the_weights_and_adds_two_all_reduces_a_layer():
    one, four = step_of().breakdown(decoding(64, 1000)), step_of(tp=4).breakdown(decoding(64, 1000))
    payload = 64 * 1024 * 2
    assert four["all_reduce"] == pytest.approx(2 * 4 * (5e-6 + 1.5 * payload / 5e10))
    assert four["mlp_gemm"] < one["mlp_gemm"] / 2
    assert "all_reduce" not in one


@pytest.mark.parametrize("overlapped", [False, True])
def test_host_time_is_added_or_hidden(overlapped):
    gpu_s = step_of().pace(decoding(8, 1000)).first_s
    step = step_of(host=engine(1e-3, 1e-4, overlapped=overlapped))
    assert step.pace(decoding(8, 1000)).first_s == pytest.approx(max(gpu_s, 1.8e-3) if overlapped else gpu_s + 1.8e-3)
    padded = decoding(8, 1000)
    padded.padding = 2
    assert step.pace(padded).first_s == pytest.approx(max(gpu_s, 2e-3) if overlapped else gpu_s + 2e-3)


def test_an_iteration_that_prefills_costs_host_time_of_its_own():
    step, plain = step_of(host=engine(per_prefill_s=0.25)), step_of()
    assert step.pace(prompts((10, 0))).first_s == pytest.approx(plain.pace(prompts((10, 0))).first_s + 0.25)
    assert step.pace(decoding(3, 10)) == plain.pace(decoding(3, 10))


def test_a_pace_ends_where_the_gpu_overtakes_the_host():
    plain, sequences = step_of(), 16
    host_s = plain.pace(decoding(sequences, 5000)).first_s
    step = step_of(host=engine(host_s, overlapped=True))
    pace = step.pace(decoding(sequences, 1000))
    assert pace[:2] == (host_s, 0.0)
    assert pace.iterations in (4000, 4001)  # at 5000 tokens both are equally long
    last, next_ = (decoding(sequences, 1000 + int(pace.iterations) + shift) for shift in (-1, 1))
    assert plain.pace(last).first_s <= host_s * (1 + 1e-12)
    assert step.pace(next_).first_s > host_s
    assert step.pace(next_).iterations == math.inf


def test_windows_grow_only_while_decodes_are_below_them():
    step = step_of(dense(window=512))
    assert step.windows == (512,)
    below, at = decoding(10, 500, (512,)), decoding(10, 512, (512,))
    assert step.pace(below, (10,)).growth_s == pytest.approx(2 * step.pace(at).growth_s)
    after = Batch(decodes=10, decode_context_tokens=5010, decode_window_tokens=(5010,), sampled=10)
    assert step.pace(after).first_s == pytest.approx(sum(step.pace(below, (10,))[:2]), rel=1e-12)


def test_a_batch_without_the_windows_of_the_model_is_a_mistake():
    with pytest.raises(ValueError, match="zip"):
        step_of(dense(window=512)).pace(decoding(10, 500))


def test_sparse_attention_reads_what_its_indexer_picks():
    indexer = Indexer(heads=4, head_dim=128, top_k=2048, params=1024 * 512)
    latent = LatentAttention(
        heads=16, kv_lora_rank=512, nope_head_dim=128, rope_head_dim=64, v_head_dim=128, indexer=indexer
    )
    step = step_of(model(Layers(count=2, attention=latent, mlp=DenseMlp(intermediate=2048))))
    assert step.windows == (2048,)
    long, longer = (step.breakdown(decoding(8, context, (2048,)))["attention_decode"] for context in (50_000, 100_000))
    index_s = 2 * 8 * 50_000 * 132 / 5e11  # 2 layers read a key of 132 B of each token
    assert longer - long == pytest.approx(index_s, rel=1e-6)


def test_latent_attention_keeps_one_latent_for_all_ranks():
    latent = LatentAttention(heads=16, kv_lora_rank=512, nope_head_dim=128, rope_head_dim=64, v_head_dim=128)
    of = model(Layers(count=2, attention=latent, mlp=DenseMlp(intermediate=2048)))
    assert [step_of(of, tp=tp).decode[0].bytes_per_token for tp in (1, 4)] == [1152, 1152]
    assert [step_of(of, tp=tp).decode[0].flops_per_token for tp in (1, 4)] == [2 * 16 * 1088, 2 * 4 * 1088]


def test_a_linear_layer_has_a_state_and_no_context():
    linear = LinearAttention(params=4 * 1024 * 1024, state_bytes=1e6)
    step = step_of(model(Layers(count=2, attention=linear, mlp=NoMlp())))
    assert step.pace(decoding(10, 1000)).growth_s == 0
    assert step.breakdown(decoding(10, 1000))["state"] == pytest.approx(2 * (10 * 2e6 / 8e11 + 3e-6))


def test_experts_spread_over_ranks_and_meet_all_tokens_of_data_parallel_attention():
    of = model(Layers(count=2, attention=GQA, mlp=MOE))
    alone, spread = step_of(of).breakdown(prompts((4096, 0))), step_of(of, dp=8, ep=8).breakdown(prompts((4096, 0)))
    # Eight ranks bring eight times the rows, and each reads and computes an eighth, but sorts all of them.
    read_s, sorted_s = 2 * 64 * 3 * 1024 * 512 * 2 / 5e11, 2 * 4096 * 4 * 1024 * 2e-12
    assert spread["experts"] == pytest.approx(alone["experts"] - read_s * 7 / 8 + sorted_s * 7, rel=1e-6)
    assert "expert_exchange" in spread
    assert "all_reduce" not in spread


def test_experts_that_cannot_be_spread_evenly_are_refused():
    with pytest.raises(ConfigError, match="ep 3 does not divide tp \\* dp = 4"):
        step_of(model(Layers(count=2, attention=GQA, mlp=MOE)), tp=4, ep=3)


@pytest.mark.parametrize("sequences", [1, 3, 4, 16])
def test_pipeline_of_decodes(sequences):
    """Fewer sequences than stages pass them one by one; enough keep all busy, each with a quarter of the batch."""
    of, batch = dense(layers=8, vocab=64), decoding(sequences, 1000)
    parts = min(4, sequences)
    part = step_of(of).breakdown(decoding(-(-sequences // parts), 1000 * sequences / parts / -(-sequences // parts)))
    seconds = step_of(of, pp=4).breakdown(batch)
    assert seconds["mlp_gemm"] == pytest.approx(part["mlp_gemm"])
    assert seconds["attention_decode"] == pytest.approx(part["attention_decode"])
    assert seconds["head"] == pytest.approx(part["head"] * (4 if sequences >= 4 else 1))
    assert step_of(of, pp=4).pace(batch).first_s == pytest.approx(sum(seconds.values()))


def test_a_pipeline_is_as_slow_as_its_largest_stage():
    # 9 layers on 4 stages: the largest has 3, so a full round takes 12 layers' time.
    of, batch = dense(layers=9), decoding(16, 1000)
    assert step_of(of, pp=4).breakdown(batch)["mlp_gemm"] == pytest.approx(
        step_of(of).breakdown(decoding(4, 1000))["mlp_gemm"] * 12 / 9
    )


def test_limits_are_shares():
    step = step_of(tp=4, host=engine(1e-3))
    shares = step.limits(decoding(64, 1000))
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["host"] == pytest.approx(1e-3 / step.pace(decoding(64, 1000)).first_s)
    assert set(shares) == {"memory", "link", "latency", "host"}
    assert step_of(dense(hidden=8192, heads=64)).limits(prompts((8192, 0)))["compute"] > 0.5


def test_admission_delay():
    assert step_of(host=engine(fixed_s=0.01, per_token_s=2e-6)).admission_delay_s(5000) == pytest.approx(0.02)


def test_kernel_time_factor_scales_what_does_not_depend_on_size():
    launches = step_of().limits(decoding(1, 1))["latency"] * step_of().pace(decoding(1, 1)).first_s
    none = step_of(roofline=Roofline(kernel_time_factor=0))
    assert none.pace(decoding(1, 1)).first_s == pytest.approx(
        step_of().pace(decoding(1, 1)).first_s - launches, rel=1e-3
    )


def test_weights_in_8_bits_with_an_8_bit_cache():
    half = step_of(quantization=Quantization(weights="fp8", kv_cache="fp8"))
    assert half.decode[0].bytes_per_token == step_of().decode[0].bytes_per_token / 2
    assert half.decode[0].rates.launch_s == 2e-5
    assert half.breakdown(decoding(1, 1000))["mlp_gemm"] < 0.7 * step_of().breakdown(decoding(1, 1000))["mlp_gemm"]


def test_ranks_without_a_link_are_refused():
    lonely = ROUND.model_copy(update={"interconnect": None, "pcie_bytes_per_s": None})
    with pytest.raises(ProfileError, match="Round has no PCIe bandwidth, so 2 ranks cannot be joined"):
        step_of(hardware=lonely, tp=2)
    assert step_of(hardware=lonely).pace(decoding(1, 1)).first_s > 0


def test_an_accelerator_without_16_bit_products_is_refused():
    odd = ROUND.model_copy(update={"peak_flops": {"fp8": 1e15}})
    with pytest.raises(ProfileError, match="peak_flops has no bf16; it has fp8"):
        step_of(hardware=odd)
