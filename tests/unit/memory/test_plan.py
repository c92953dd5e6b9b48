"""How each engine divides a card, and what the plan then says."""

import pytest
from handmade_memory import GIB, MIB, PLAIN, STATE, WINDOWED, card, layer, limits, model, plan_of

from sim.errors import InfeasibleError
from sim.profiles.engine_memory import (
    Activations,
    CudaGraphs,
    FreeFractionMemory,
    SlotMemory,
    StaticFractionMemory,
)

OF = model(layer())
WEIGHTS = plan_of(OF).weights_bytes
TOKEN = 4 * 4 * 2 * 64 * 2  # layers, KV heads, key and value, head width, bf16


def test_identity_of_vllm():
    memory = PLAIN.model_copy(
        update={
            "activations": Activations(fixed_bytes=5 * MIB),
            "non_torch_bytes": 3 * MIB,
            "non_torch_tp_bytes": 30 * MIB,
            "non_torch_pp_bytes": 1 * MIB,
        }
    )
    knobs = limits(gpu_memory_utilization=0.5)
    for degrees, outside in (({}, 3), ({"tp": 2}, 30), ({"pp": 2}, 1), ({"tp": 2, "pp": 2}, 30), ({"dp": 2}, 30)):
        rank = plan_of(OF, memory=memory, knobs=knobs, **degrees).ranks[0]
        assert rank.non_torch_bytes == outside * MIB
        assert rank.kv_bytes == 0.5 * GIB - rank.weights_bytes - rank.activation_bytes - outside * MIB


def test_blocks_and_tokens():
    made = plan_of(OF)
    assert made.kv_bytes_per_token == TOKEN
    assert made.num_blocks == int(made.kv_bytes // (16 * TOKEN))
    assert made.kv_tokens == made.num_blocks * 16
    assert made.max_concurrency == made.num_blocks / 64
    assert made.fits
    assert made.reason == ""


@pytest.mark.parametrize(("subtracted", "kv_grows"), [(False, 0), (True, 1)])
def test_cuda_graphs_are_taken_off_from_021(subtracted, kv_grows):
    graphs = CudaGraphs(fixed_bytes=1000, per_layer_and_size_bytes=10, moe_bytes=500, subtracted=subtracted)
    memory, captured = PLAIN.model_copy(update={"cuda_graphs": graphs}), limits(captured=(1, 2, 4, 8, 16))
    made = plan_of(OF, memory=memory, knobs=captured)
    assert made.cuda_graph_bytes == 1000 + 10 * 4 * 5
    assert plan_of(OF).kv_bytes - made.kv_bytes == kv_grows * made.cuda_graph_bytes - made.activation_bytes + (
        plan_of(OF).activation_bytes
    )
    assert plan_of(OF, memory=made.deployment.memory, knobs=limits(captured=())).cuda_graph_bytes == 0


def test_the_poorest_stage_decides():
    made = plan_of(model(layer(count=5)), pp=2, tp=2)
    first, last = made.blocks_by_stage
    assert first < last
    assert made.num_blocks == first
    assert made.binding_rank == 0
    heavy_head = model(layer(count=4), vocab_size=100_000)
    assert plan_of(heavy_head, pp=2, tp=2).binding_rank in (0, 2)


def test_tokens_of_several_groups_are_logged_in_two_ways():
    of = model(layer(), layer(WINDOWED))
    knobs = limits(max_model_len=2048, max_num_batched_tokens=128)
    by_group = plan_of(of, knobs=knobs)
    assert by_group.kv_tokens == by_group.num_blocks // 2 * 16
    by_request = plan_of(of, knobs=knobs, memory=PLAIN.model_copy(update={"log_tokens": "requests"}))
    needed = 128 + -(-(99 + 128) // 16) + 1
    assert by_request.kv_tokens == int(by_request.num_blocks / needed * 2048)


def test_batches_in_flight_enlarge_windows():
    of = model(layer(), layer(WINDOWED))
    one, two = (plan_of(of, memory=PLAIN.model_copy(update={"in_flight_batches": n})) for n in (1, 2))
    assert two.blocks_of(1024) - one.blocks_of(1024) == 256 // 16


def test_states_share_the_pool():
    made = plan_of(model(layer(), layer(STATE)))
    assert made.blocks_of(1) == 2
    assert made.kv_bytes_per_token == TOKEN


def test_no_memory_is_said_with_numbers():
    made = plan_of(OF, on=card(0.01))
    assert not made.fits
    assert made.num_blocks == 0
    assert "leave nothing for the KV cache" in made.reason
    assert "0.01 GiB usable on card" in made.reason
    with pytest.raises(InfeasibleError, match="Nearest that fits: more") as raised:
        made.require(["more"])
    assert raised.value.exit_code == 3


def test_a_sequence_that_finds_no_room_is_said_with_numbers():
    tight = card((WEIGHTS + 10 * MIB) / GIB)
    made = plan_of(OF, on=tight, knobs=limits(max_model_len=4096, max_num_batched_tokens=1))
    assert made.kv_bytes > 0
    assert not made.fits
    assert "1 sequence of 4,096 tokens" in made.reason
    assert made.blocks_of(made.longest_sequence) <= made.num_blocks < made.blocks_of(made.longest_sequence + 1)


def test_more_sequences_may_be_asked_for():
    one = plan_of(OF)
    held = int(one.max_concurrency)
    assert plan_of(OF, knobs=limits(min_sequences=held)).fits
    assert not plan_of(OF, knobs=limits(min_sequences=held + 1)).fits


def test_ranks_that_cannot_share_the_model():
    made = plan_of(OF, tp=3)
    assert (made.fits, made.num_blocks, made.kv_tokens) == (False, 0, 0)
    assert "do not divide by tp 3" in made.reason
    assert "6 pipeline stages for 4 layers" in plan_of(OF, pp=6).reason


def test_sglang_takes_a_fraction_of_free_memory():
    memory = StaticFractionMemory(context_bytes=100 * MIB, collectives_bytes=50 * MIB)
    knobs = limits(gpu_memory_utilization=0.8)
    assert plan_of(OF, memory=memory, knobs=knobs).kv_bytes == pytest.approx((GIB - 100 * MIB) * 0.8 - WEIGHTS)
    two = plan_of(OF, memory=memory, knobs=knobs, tp=2)
    assert two.kv_bytes == pytest.approx((GIB - 150 * MIB) * 0.8 - two.weights_bytes)


def test_sglang_computes_its_fraction():
    # 0.5.10: 512 MiB + 1.5 MiB a chunk token + 2 MiB a graph row + 1/8 GiB a rank; H100: 512 + 12288 + 1024 + 128
    memory = StaticFractionMemory(
        context_bytes=0,
        collectives_bytes=0,
        reserved_bytes=512 * MIB,
        reserved_per_chunk_token_bytes=1.5 * MIB,
        reserved_per_graph_row_bytes=2 * MIB,
        reserved_per_rank_bytes=128 * MIB,
        reserved_floor_bytes=10 * GIB,
    )
    knobs = limits(gpu_memory_utilization=None, max_num_seqs=2048, max_num_batched_tokens=8192)
    rank = plan_of(OF, memory=memory, on=card(79.1), knobs=knobs).ranks[0]
    assert rank.usable_bytes == pytest.approx(round(1 - 13952 / (79.1 * 1024), 3) * 79.1 * GIB)
    small = plan_of(OF, memory=memory, on=card(70), knobs=limits(gpu_memory_utilization=None)).ranks[0]
    assert small.usable_bytes == pytest.approx(round(60 / 70, 3) * 70 * GIB)


def test_sglang_keeps_fewer_tokens_of_windowed_layers():
    memory = StaticFractionMemory(context_bytes=0, collectives_bytes=0, window_tokens_ratio=0.5)
    made = plan_of(model(layer(), layer(WINDOWED)), memory=memory, knobs=limits(block_size=1))
    assert made.kv_tokens == int(made.kv_bytes // (1.5 * TOKEN))


def test_tensorrt_llm_takes_a_fraction_of_what_is_left():
    memory = FreeFractionMemory(context_bytes=100 * MIB, collectives_bytes=0)
    made = plan_of(OF, memory=memory, knobs=limits(gpu_memory_utilization=0.9))
    assert made.kv_bytes == pytest.approx(0.9 * (GIB - 100 * MIB - WEIGHTS - made.activation_bytes))


def test_slots_are_allocated_whole():
    memory = SlotMemory(context_bytes=0, margin_bytes=0)
    made = plan_of(OF, memory=memory, knobs=limits(block_size=1, max_num_seqs=4))
    assert made.kv_tokens == 4 * 1024
    assert made.activation_bytes == 512 * (1000 + 512) * 4
    shared = SlotMemory(context_bytes=0, margin_bytes=0, shared_context=True)
    assert plan_of(OF, memory=shared, knobs=limits(block_size=1, max_num_seqs=4)).kv_tokens == 1024
    assert not plan_of(OF, memory=memory, on=card(0.08), knobs=limits(max_num_seqs=64)).fits


def test_slots_keep_windows_and_states_for_each_sequence():
    memory = SlotMemory(context_bytes=0, margin_bytes=0)
    of = model(layer(WINDOWED), layer(STATE), layer())
    rank = plan_of(of, memory=memory, knobs=limits(max_num_seqs=2, block_size=1)).ranks[0]
    # 100 + 512 tokens, rounded up to 256
    assert rank.state_bytes == 2 * 4 * (768 * TOKEN / 4 + 40_000)


def test_json_has_the_keys_of_the_contract():
    made = plan_of(OF).to_json()
    assert list(made) == [
        *("weights_gib", "activation_gib", "non_torch_gib", "cuda_graph_gib", "kv_gib"),
        *("kv_tokens", "kv_blocks", "kv_bytes_per_token", "max_concurrency", "fits", "reason", "binding_rank"),
    ]
    assert made["reason"] is None
