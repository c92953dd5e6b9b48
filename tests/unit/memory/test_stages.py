"""Cutting a model over ranks, against vLLM's rules."""

import pytest
from handmade_memory import DENSE, GQA, MLA, MOE, STATE, layer, model

from sim.memory.stages import obstacles, padded_vocab, rank_layer, stage_sizes, stages
from sim.profiles.parallelism import Parallelism


@pytest.mark.parametrize(
    ("layers", "pp", "expected"),
    [
        # By hand from vLLM distributed/utils.py: get_pp_indices
        (4, 2, [2, 2]),
        (5, 2, [3, 2]),
        (7, 3, [2, 3, 2]),
        (5, 3, [2, 2, 1]),
        (9, 4, [2, 2, 3, 2]),
        (10, 4, [2, 3, 3, 2]),
        (11, 4, [3, 3, 3, 2]),
    ],
)
def test_remainder_goes_before_the_last_stage(layers, pp, expected):
    assert stage_sizes(layers, pp) == expected


def test_stages_cover_every_layer_once():
    cuts = stages(model(layer(count=7)), 3)
    assert cuts == [range(2), range(2, 5), range(5, 7)]


@pytest.mark.parametrize(("vocab", "padded"), [(64, 64), (65, 128), (151_936, 151_936), (201_088, 201_088)])
def test_vocabulary_is_padded_to_64(vocab, padded):
    assert padded_vocab(vocab) == padded


def test_rank_has_its_share_of_heads_and_widths():
    own = rank_layer(layer(GQA, DENSE), Parallelism(tp=2))
    assert (own.attention.heads, own.attention.kv_heads, own.mlp.intermediate) == (4, 2, 1024)


def test_kv_heads_are_replicated_beyond_their_number():
    assert rank_layer(layer(GQA, DENSE), Parallelism(tp=8)).attention.kv_heads == 1


def test_latent_stays_whole_and_state_is_shared():
    assert rank_layer(layer(MLA), Parallelism(tp=4)).attention.kv_lora_rank == 64
    assert rank_layer(layer(STATE), Parallelism(tp=4)).attention.state_bytes == 10_000


@pytest.mark.parametrize(
    ("degrees", "experts", "width"),
    [
        ({"tp": 4}, 8, 64),
        ({"tp": 4, "ep": 4}, 2, 256),
        ({"tp": 4, "ep": 2}, 4, 128),
        ({"tp": 2, "dp": 2, "ep": 4}, 2, 256),
        ({"tp": 2, "dp": 2}, 8, 64),
    ],
)
def test_experts_live_on_all_ranks_of_a_stage(degrees, experts, width):
    own = rank_layer(layer(mlp=MOE), Parallelism(**degrees)).mlp
    assert (own.experts, own.expert_intermediate) == (experts, width)


@pytest.mark.parametrize(
    ("of", "degrees", "words"),
    [
        (model(layer()), {"tp": 3}, "8 attention heads do not divide by tp 3"),
        (model(layer(), vocab_size=151_936), {"tp": 5}, "vocabulary of 151,936"),
        (model(layer(mlp=DENSE.model_copy(update={"intermediate": 2049}))), {"tp": 2}, "feed-forward width 2,049"),
        (model(layer(mlp=MOE)), {"tp": 1, "ep": 2}, "ep 2 does not divide tp x dp = 1"),
        (model(layer(mlp=MOE)), {"tp": 16, "ep": 16}, "8 experts do not divide by ep 16"),
        (model(layer(count=2)), {"pp": 3}, "3 pipeline stages for 2 layers"),
        (model(layer(GQA.model_copy(update={"heads": 12, "kv_heads": 6}))), {"tp": 4}, "neither divides the other"),
    ],
)
def test_what_does_not_divide_is_refused(of, degrees, words):
    assert any(words in obstacle for obstacle in obstacles(of, Parallelism(**degrees)))


def test_a_model_that_divides_has_no_obstacles():
    assert obstacles(model(layer(), layer(mlp=MOE)), Parallelism(tp=4, pp=2)) == []


def test_scale_blocks_may_not_be_cut():
    # Qwen3-235B-A22B-FP8: 1536 / 8 = 192 is no multiple of 128, and the model card says so; 1536 / 4 = 384 is one.
    wide = model(layer(mlp=MOE.model_copy(update={"expert_intermediate": 1536})))
    assert obstacles(wide, Parallelism(tp=4), block=128) == []
    assert "no multiple of the 128" in obstacles(wide, Parallelism(tp=8), block=128)[0]
