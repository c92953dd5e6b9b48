"""Each operation against a value worked out by hand; the formulas are in the docstrings of `sim.cost`."""

import pytest
from round_numbers import CONSTANTS, ROUND, dense, step_of

from sim.batch import Batch, Chunk
from sim.cost.accelerator import Accelerator
from sim.cost.allreduce import AllReduce
from sim.cost.attention import DecodeAttention, PrefillAttention, attended
from sim.cost.elementwise import Elementwise
from sim.cost.gemm import Gemm
from sim.cost.moe import Experts, distinct_experts
from sim.cost.operation import Demand, Work, joint
from sim.cost.rates import Factors
from sim.profiles.calibrated import Constant, HardwareCalibration

CHIP = Accelerator(ROUND, CONSTANTS)


def _tokens(count, sampled=0):
    return Work(count, sampled, 0, 0, 0.0, (), ())


@pytest.mark.parametrize(
    ("times", "sharpness", "expected"),
    [((3e-3, 4e-3, 0.0), 2.0, 5e-3), ((1e-3, 2e-3, 3e-3), 1.0, 6e-3), ((1e-6, 2e-3, 0.0), 12.0, 2e-3)],
)
def test_the_norm_of_three_times(times, sharpness, expected):
    assert joint(*times, sharpness) == pytest.approx(expected, rel=1e-9)


def test_a_product_in_16_bits():
    # 2*100*1000*2000 FLOP / 5e14, (4e6 + 2*100*3000) B / 5e11, 2000 steps of 0.001*2*128*128*100/1e15 s, 1 us.
    demand = Gemm("", 1, k=2000, n=1000, rates=CHIP.gemm("bf16")).demand(_tokens(100))
    assert demand.compute_s == pytest.approx(8e-7)
    assert demand.memory_s == pytest.approx(9.2e-6)
    assert demand.depth_s == pytest.approx(6.5536e-9)
    assert demand.seconds == pytest.approx(8e-7 + 9.2e-6 + 6.5536e-9 + 1e-6)


def test_a_product_in_8_bits_reads_half_and_quantises_its_inputs():
    # 2 passes of 3 bytes over 100*2000 inputs at 1e12 B/s.
    demand = Gemm("", 1, k=2000, n=1000, rates=CHIP.gemm("fp8")).demand(_tokens(100))
    assert demand.compute_s == pytest.approx(4e-7)
    assert demand.memory_s == pytest.approx((2e6 + 6e5) / 5e11)
    assert demand.fixed_s == pytest.approx(1e-6 + 1.2e-6)


def test_the_output_head_counts_sampled_sequences():
    head = Gemm("", 1, k=2000, n=1000, rates=CHIP.gemm("bf16"), rows="sampled")
    assert head.demand(_tokens(5000, sampled=100)).seconds == pytest.approx(1.10065536e-5, rel=1e-6)


@pytest.mark.parametrize(
    ("weights", "activations", "multiplies_at", "weight_bytes", "quantises"),
    [
        ("fp16", None, 1e15, 2, False),
        ("int4", None, 1e15, 4.125 / 8, False),  # unpacked to 16 bits
        ("fp8", "bf16", 1e15, 1, False),  # weight only
        ("fp8", None, 2e15, 1, True),
        ("fp8_block", None, 2e15, 1 + 4 / 128**2, True),  # with the constants of fp8
        ("nvfp4", None, 1e15, 4.5 / 8, False),  # the accelerator cannot multiply it
        ("int8", None, 1e15, 1, False),
    ],
)
def test_in_what_type_weights_are_multiplied(weights, activations, multiplies_at, weight_bytes, quantises):
    rates = CHIP.gemm(weights, activations)
    assert rates.flops_per_s == pytest.approx(0.5 * multiplies_at)
    assert rates.weight_bytes == pytest.approx(weight_bytes)
    assert (rates.quantise_s > 0) == quantises


def test_an_engine_may_have_constants_of_its_own():
    assert Accelerator(ROUND, CONSTANTS, kernels="other").gemm("fp8").launch_s == 3e-6
    assert Accelerator(ROUND, CONSTANTS, kernels="third").gemm("fp8").launch_s == 1e-6


def test_inputs_that_come_in_fp8_are_not_quantised_again():
    chips = (Accelerator(ROUND, CONSTANTS, kernels="other", fp8_inputs_fused=each) for each in (True, False))
    fused, apart = (chip.gemm("fp8") for chip in chips)
    assert (apart.launch_s, apart.quantise_s > 0) == (3e-6, True)
    assert (fused.launch_s, fused.quantise_s) == (CHIP.gemm("bf16").launch_s, 0.0)
    assert fused.flops_per_s == apart.flops_per_s


def test_factors_scale_rates_and_fixed_times():
    rates, faster = CHIP.gemm("bf16"), Accelerator(ROUND, CONSTANTS, Factors(2.0, 1.5, 0.5)).gemm("bf16")
    assert faster.flops_per_s == 2 * rates.flops_per_s
    assert faster.bytes_per_s == 1.5 * rates.bytes_per_s
    assert faster.launch_s == rates.launch_s / 2


def test_decode_attention_is_linear_in_the_context():
    # 10,000 tokens * 4096 B / 5e11, 4 sequences * 8 KV heads * 1 us / 100 processors, 10 us.
    attention = DecodeAttention("", 1, 1e5, 4096.0, 8, CHIP.decode("bf16"))
    work = Work.of(Batch(decodes=4, decode_context_tokens=10_000, sampled=4))
    assert attention.demand(work).seconds == pytest.approx(8.192e-5 + 3.2e-7 + 1e-5, rel=1e-9)
    double = Work.of(Batch(decodes=4, decode_context_tokens=20_000, sampled=4))
    growth = attention.demand(double).seconds - attention.demand(work).seconds
    assert growth == pytest.approx(10_000 * attention.seconds_per_token, rel=1e-9)


def test_each_query_head_of_a_sequence_takes_time():
    # 4 sequences of 8 KV heads and 32 query heads, 1 us and 0.5 us of one of 100 processors each.
    rates = CHIP.decode("bf16")._replace(head_s=5e-9)
    attention = DecodeAttention("", 1, 1e5, 4096.0, 8, rates, heads=32)
    assert attention.seconds_per_sequence == pytest.approx(8e-8 + 1.6e-7)
    work = Work.of(Batch(decodes=4, decode_context_tokens=0, sampled=4))
    assert attention.demand(work).fixed_s == pytest.approx(1e-5 + 4 * 2.4e-7)


def test_latent_attention_may_take_longer_with_32_heads():
    slow = CONSTANTS.latent_decode["bf16"].model_copy(update={"at_32_heads": Constant(value=1.5, bounds=(1, 3))})
    chip = Accelerator(ROUND, CONSTANTS.model_copy(update={"latent_decode": {"bf16": slow}}))
    rates = {heads: chip.decode("bf16", heads=heads, latent=True).bytes_per_s for heads in (16, 32, 64)}
    assert rates == {16: 5e11, 32: pytest.approx(5e11 / 1.5), 64: 5e11}
    assert chip.decode("bf16", heads=32).bytes_per_s == 5e11  # its own constants


def test_kernels_walk_along_the_mean_sequence():
    # 4 sequences of 2,500 tokens, 2 ns each.
    walking = DecodeAttention("", 1, 1e5, 4096.0, 8, CHIP.decode("bf16")._replace(walk_s=2e-9))
    work = Work.of(Batch(decodes=4, decode_context_tokens=10_000, sampled=4))
    assert walking.demand(work).fixed_s == pytest.approx(1e-5 + 4 * 8e-8 + 5e-6)


@pytest.mark.parametrize(("tokens", "lost_s"), [(5_000, 2.048e-5), (10_000, 4e-5), (20_000, 4e-5)])
def test_a_kernel_that_ramps_up_loses_time_until_it_reads_at_its_full_rate(tokens, lost_s):
    # tokens * 4096 B / 5e11 at the full rate, half of it more until 40 us are lost: from 9,766 tokens on.
    late = DecodeAttention("", 1, 1e5, 4096.0, 8, CHIP.decode("bf16")._replace(ramp=0.5, ramp_s=4e-5))
    demand = late.demand(Work.of(Batch(decodes=4, decode_context_tokens=tokens, sampled=4)))
    assert demand.seconds == pytest.approx(tokens * 8.192e-9 + 4 * 8e-8 + 1e-5 + lost_s, rel=1e-9)
    assert late.full_rate_since == pytest.approx(4e-5 / (0.5 * 8.192e-9), rel=1e-9)


def test_a_window_caps_the_context():
    windowed = DecodeAttention("", 1, 1e5, 4096.0, 8, CHIP.decode("bf16"), window=0)
    work = Work.of(Batch(decodes=4, decode_context_tokens=10_000, decode_window_tokens=(2_000,), sampled=4))
    assert windowed.demand(work).memory_s == pytest.approx(2_000 * 4096 / 5e11)


@pytest.mark.parametrize(
    ("tokens", "past", "window", "by_hand"),
    [
        (4, 0, None, 1 + 2 + 3 + 4),
        (3, 5, None, 6 + 7 + 8),
        (4, 0, 2, 1 + 2 + 2 + 2),
        (3, 5, 4, 4 + 4 + 4),
        (4, 1, 3, 2 + 3 + 3 + 3),
        (4, 1, 5, 2 + 3 + 4 + 5),
    ],
)
def test_query_key_pairs(tokens, past, window, by_hand):
    assert attended(Chunk(tokens, past), window) == by_hand


def test_prefill_attention():
    # 256 tokens on 256: 98,432 pairs * 2*10*200 FLOP / 5e14, and 2 tiles of 10 heads, each 1 us / 100;
    # 512 keys of 4000 B and 256*10*200 queries and outputs of 2 B / 5e11;
    # 384.5 keys a query * 200 * 2*128*100/5e14; 10 us, and 2 passes over 256 * 4000 B at 1e12.
    attention = PrefillAttention("", 1, 10, 200, 4000.0, 4000.0, CHIP.prefill("bf16"))
    demand = attention.demand(Work.of(Batch(chunks=(Chunk(256, 256),))))
    assert demand.compute_s == pytest.approx(7.87456e-7 + 2e-7)
    assert demand.memory_s == pytest.approx(6.144e-6)
    assert demand.depth_s == pytest.approx(3.93728e-6)
    assert demand.fixed_s == pytest.approx(1e-5 + 2.048e-6)


def test_exponentials_widen_each_pair_and_edges_are_computed_in_vain():
    # 256 tokens on 256 see 98,432 pairs, and 8 more each at the diagonal: 100,480, each 50 wider than 200.
    rates = CHIP.prefill("bf16")._replace(exponent=50.0, edge=8.0)
    chunk = Chunk(256, 256)
    plain = PrefillAttention("", 1, 10, 200, 4000.0, 4000.0, rates).demand(Work.of(Batch(chunks=(chunk,))))
    assert plain.compute_s == pytest.approx(100_480 * 2 * 10 * 250 / 5e14 + 2e-7)
    assert plain.depth_s == pytest.approx((384.5 + 8) * 250 * 2 * 128 * 100 / 5e14)
    # In a window of 100 each sees 100, and has an edge at either end; in one of 512, only the diagonal.
    windowed, whole = (
        PrefillAttention("", 1, 10, 200, 4000.0, 4000.0, rates, reach).demand(Work.of(Batch(chunks=(chunk,))))
        for reach in (100, 512)
    )
    assert windowed.compute_s == pytest.approx(256 * (100 + 2 * 8) * 2 * 10 * 250 / 5e14 + 2e-7)
    assert whole.compute_s == plain.compute_s


def test_heads_of_256_are_slower():
    slow = {"value": 2.0, "bounds": (0, 10)}
    attention = {
        name: {"bf16": getattr(CONSTANTS, name)["bf16"].model_dump() | {"wide": slow}} for name in ("decode", "prefill")
    }
    wide = Accelerator(ROUND, HardwareCalibration.model_validate(CONSTANTS.model_dump() | attention))
    assert wide.decode("bf16", 128) == CHIP.decode("bf16", 256) == CHIP.decode("bf16")
    assert wide.decode("bf16", 256).bytes_per_s == CHIP.decode("bf16").bytes_per_s / 2
    assert wide.prefill("bf16", 256).flops_per_s == CHIP.prefill("bf16").flops_per_s / 2
    assert wide.prefill("bf16", 256).depth_s == CHIP.prefill("bf16").depth_s * 2


def test_the_longest_of_several_chunks_gives_the_depth():
    attention = PrefillAttention("", 1, 10, 200, 4000.0, 4000.0, CHIP.prefill("bf16"))
    alone, both = Batch(chunks=(Chunk(256, 256),)), Batch(chunks=(Chunk(128, 0), Chunk(256, 256), Chunk(1, 0)))
    assert attention.demand(Work.of(both)).depth_s == attention.demand(Work.of(alone)).depth_s
    assert attention.demand(Work.of(both)).compute_s > attention.demand(Work.of(alone)).compute_s


@pytest.mark.parametrize(
    ("ranks", "payload", "expected"),
    [
        (4, 1e5, 5e-6 + 1.5e5 / 5e10),  # one-shot below 512 KiB
        (4, 1e6, 1e-5 + 1.5e6 / 5e10),  # two-shot below 8 MiB
        (8, 2.0**19, 1e-5 + 1.75 * 2**19 / 5e10),  # of that size, no longer one-shot
        (4, 4e7, 2e-5 + 6e7 / 8e10),  # the library
        (16, 1e8, 2e-5 + 1.875e8 / (0.8 * 1e9)),  # over the network
    ],
)
def test_all_reduce(ranks, payload, expected):
    assert AllReduce("", 1, ranks, payload, CHIP.link(ranks)).demand(_tokens(1)).seconds == pytest.approx(expected)


def test_a_bridge_joins_two_and_the_bus_the_others():
    bridged = ROUND.model_copy(update={"interconnect": ROUND.interconnect.model_copy(update={"joins": 2})})
    chip = Accelerator(bridged, CONSTANTS)
    assert chip.link(2).small.bytes_per_s == pytest.approx(0.5 * 1e11)
    assert chip.link(4).small.bytes_per_s == pytest.approx(0.2 * 1e10)


def test_over_pcie_or_without_access_to_each_other_an_all_reduce_is_that_of_the_bus():
    assert Accelerator(ROUND.over_pcie(), CONSTANTS).link(2).small.bytes_per_s == pytest.approx(0.2 * 1e10)
    reached = ROUND.model_copy(update={"interconnect": None})
    assert Accelerator(reached, CONSTANTS).link(2).small.bytes_per_s == pytest.approx(0.5 * 1e10)


def test_distinct_experts():
    assert distinct_experts(2, 1, 3) == pytest.approx(2 * (1 - 1 / 8))
    assert distinct_experts(128, 8, 1) == pytest.approx(8)
    assert distinct_experts(256, 8, 10_000) == pytest.approx(256)


def test_routed_experts():
    # 16 of 64 experts a rank over 4 ranks, 2 choices of 1000 tokens: 500 rows, 16 experts touched;
    # 500 * 6*1000*500 FLOP / 5e14; 16 * 1.5e6 * 2 B / 5e11; 20 us, 500 rows * (2000 + 1500) * 2 B / 1e12,
    # and half a pass in and out over 2000 * 1000 inputs.
    experts = Experts("", 1, 64, 2, 1000, 500.0, 3, 4, 1, CHIP.experts("bf16"))
    demand = experts.demand(_tokens(1000))
    assert demand.compute_s == pytest.approx(3e-6)
    assert demand.memory_s == pytest.approx(9.6e-5, rel=1e-9)
    assert demand.fixed_s == pytest.approx(2e-5 + 3.5e-6 + 4e-6)


@pytest.mark.parametrize(("tokens", "share"), [(1, 1 / 17), (16, 0.5), (112, 0.875)])
def test_many_tokens_take_longer_to_sort(tokens, share):
    routing_s = Constant(value=1.7e-5, stderr=0.0, bounds=(0.0, 1.0), status="fixed")
    own = {"bf16": CONSTANTS.experts["bf16"].model_copy(update={"routing_s": routing_s})}
    slower = Accelerator(ROUND, CONSTANTS.model_copy(update={"experts": own}))
    without, added = (
        Experts("", 1, 64, 2, 1000, 500.0, 3, 4, 1, chip.experts("bf16")).demand(_tokens(tokens)).fixed_s
        for chip in (CHIP, slower)
    )
    assert added - without == pytest.approx(share * 1.7e-5)


def test_few_tokens_read_few_experts():
    experts = Experts("", 1, 64, 2, 1000, 500.0, 3, 1, 1, CHIP.experts("int4"))
    assert experts.demand(_tokens(1)).memory_s == pytest.approx(2 * 1.5e6 * 4.125 / 8 / 5e11)
    assert experts.rates.launch_s == 4e-5


def test_elementwise():
    norms = Elementwise("", 1, 16_000.0, 3, CHIP.elementwise())
    assert norms.demand(_tokens(100)).seconds == pytest.approx(1.6e6 / 8e11 + 9e-6)


def test_limits_name_the_longest_of_what_overlaps():
    demand = Demand(compute_s=3.0, memory_s=4.0, depth_s=0.0, sharpness=2.0, link_s=1.0, fixed_s=0.5)
    assert demand.limits == {"compute": 0.0, "memory": 5.0, "link": 1.0, "latency": 0.5}
    assert demand.seconds == 6.5
    assert Demand(depth_s=1.0).limits["latency"] == 1.0


def test_kv_heads_are_copied_when_ranks_outnumber_them():
    kv_bytes = [step_of(dense(kv_heads=2), tp=tp).decode[0].bytes_per_token for tp in (1, 2, 4, 8)]
    assert kv_bytes == [512, 256, 256, 256]  # 2 bytes * (64 + 64) a head
    assert step_of(dense(kv_heads=2), tp=8).decode[0].flops_per_token == 2 * 2 * 128


def test_experts_have_constants_of_their_own_for_weights_and_inputs_together():
    both = CONSTANTS.experts["bf16"].model_copy(update={"launch_s": CONSTANTS.experts["int4"].launch_s})
    table = CONSTANTS.model_copy(update={"experts": CONSTANTS.experts | {"mxfp4+fp8": both}})
    chip = Accelerator(ROUND, table)
    assert chip.experts("mxfp4", "fp8").launch_s == both.launch_s.value
    assert chip.experts("mxfp4", "fp8").flops_per_s == 2 * chip.experts("mxfp4").flops_per_s
    assert chip.experts("mxfp4").launch_s == CONSTANTS.experts["bf16"].launch_s.value
