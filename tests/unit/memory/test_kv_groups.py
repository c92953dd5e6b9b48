"""Block tables and pages, against vLLM's rules."""

import pytest
from handmade_memory import GQA, MLA, STATE, WINDOWED

from sim.memory.kv_groups import LayerCache, kv_groups, layer_caches, stage_block_bytes
from sim.profiles.model import GroupedAttention

FULL, SLIDING = LayerCache(1024), LayerCache(1024, window=128)


def groups_of(*kinds, block_size=16, **options):
    layers = [(cache,) for cache, count in kinds for _ in range(count)]
    return kv_groups(layers, block_size, **options)


@pytest.mark.parametrize(("tp", "heads"), [(1, 4), (2, 2), (4, 1), (8, 1)])
def test_token_of_grouped_attention(tp, heads):
    assert layer_caches(GQA, tp, "bf16") == (LayerCache(heads * 2 * 64 * 2),)


def test_token_of_latent_attention_is_the_same_on_every_rank():
    assert layer_caches(MLA, 1, "bf16") == layer_caches(MLA, 8, "bf16") == (LayerCache((64 + 16) * 2),)


def test_fp8_halves_a_token_and_not_a_state():
    assert layer_caches(GQA, 1, "fp8")[0].token_bytes == layer_caches(GQA, 1, "bf16")[0].token_bytes / 2
    assert layer_caches(STATE, 2, "fp8") == (LayerCache(0.0, state_bytes=20_000),)


def test_key_and_value_may_differ_in_width():
    # MiMo-V2: keys of 192, values of 128
    attention = GroupedAttention(heads=8, kv_heads=4, head_dim=192, v_head_dim=128)
    assert layer_caches(attention, 1, "bf16")[0].token_bytes == 4 * (192 + 128) * 2


def test_equal_layers_make_one_group():
    (group,) = groups_of((FULL, 32))
    assert (group.block_size, group.page_bytes, len(group.layers)) == (16, 16 * 1024, 32)
    assert stage_block_bytes([group], range(16)) == 16 * 16 * 1024


def test_layers_of_other_width_share_the_group():
    # Llama-3.3-Nemotron-Super: KV heads differ by layer
    (group,) = groups_of((FULL, 3), (LayerCache(2048), 1))
    assert stage_block_bytes([group], range(4)) == 16 * (3 * 1024 + 2048)


def test_full_and_sliding_layers():
    # gpt-oss-20b: 12 of each; vLLM logs its tokens over two groups
    groups = groups_of((SLIDING, 12), (FULL, 12))
    assert [len(group.layers) for group in groups] == [12, 12]
    assert stage_block_bytes(groups, range(24)) == 12 * 16 * 1024


def test_groups_have_as_many_layers_as_the_rarest_kind():
    # gemma-3-4b: 5 full and 29 sliding layers; vLLM divides its blocks by 7
    assert len(groups_of((SLIDING, 29), (FULL, 5))) == 7


def test_nearly_equal_kinds_are_padded_instead():
    assert len(groups_of((SLIDING, 13), (FULL, 12))) == 2
    assert len(groups_of((SLIDING, 15), (FULL, 12))) == 3
    assert len(groups_of((SLIDING, 15), (FULL, 12), padding_ratio=1.5)) == 2


def test_narrow_layers_take_more_tokens_a_block():
    # Gemma-4-31B: 16 KiB a token in sliding layers, 8 KiB in full ones
    wide, narrow = groups_of((LayerCache(16_384, window=1024), 5), (LayerCache(8192), 5))
    assert (wide.block_size, narrow.block_size) == (16, 32)
    assert wide.page_bytes == narrow.page_bytes == 262_144


def test_a_page_that_is_no_multiple_is_padded():
    wide, narrow = groups_of((LayerCache(3000, window=64), 2), (LayerCache(2000), 2))
    assert (narrow.block_size, narrow.page_bytes) == (16, wide.page_bytes)


def test_blocks_grow_to_the_page_of_a_state():
    # Qwen3.5-27B: a state of 146.8 MiB / 48 layers beside 4 KiB a token makes blocks of 784 tokens
    full, state = groups_of((LayerCache(4096), 16), (LayerCache(0, state_bytes=146.8 * 2**20 / 48), 16))
    assert full.block_size == state.block_size == 784
    assert state.blocks(100_000, 8192) == 1


def test_blocks_of_a_sequence():
    (full,) = groups_of((FULL, 1))
    (sliding,) = groups_of((SLIDING, 1))
    (chunked,) = groups_of((LayerCache(1024, window=128, chunked=True), 1))
    assert full.blocks(1000, 64) == 63
    assert sliding.blocks(1000, 64) == -(-(127 + 64) // 16) + 1
    assert chunked.blocks(1000, 64) == (128 + 64) // 16
    assert sliding.blocks(32, 64) == 3


def test_without_hybrid_tables_a_window_counts_in_full():
    (group,) = groups_of((SLIDING, 2), (FULL, 2), hybrid=False)
    assert group.blocks(1000, 64) == 63


def test_a_stage_pays_for_its_largest_group():
    groups = groups_of((SLIDING, 4), (FULL, 2))
    assert stage_block_bytes(groups, range(4)) == 2 * 16 * 1024
    assert stage_block_bytes(groups, range(1)) == 16 * 1024


def test_a_model_may_keep_nothing():
    assert kv_groups([(), ()], 16) == ()
    assert stage_block_bytes((), range(2)) == 0.0


def test_window_of_a_model_reaches_its_group():
    assert layer_caches(WINDOWED, 1, "bf16")[0].window == 100
