"""Weights of a rank, by hand."""

import pytest
from handmade_memory import MLA, MOE, layer, limits, model, plan_of

from sim.memory.weights import stage_weight_bytes
from sim.profiles.engine_memory import Activations, Padding
from sim.profiles.parallelism import Parallelism
from sim.profiles.quantization import Quantization

H, V = 512, 1024  # vocabulary of 1000, padded
ATTENTION = 2 * H * 512 + 2 * H * 256  # Q and O of 8 heads, K and V of 4 heads, 64 wide
MLP = 3 * H * 2048
LAYER = ATTENTION + MLP + 1024


def rank_bytes(of, layers=None, quantization=None, engine=None, **degrees):
    return stage_weight_bytes(
        of,
        quantization or Quantization(),
        Parallelism(**degrees),
        layers or range(of.num_layers),
        engine or Activations(),
    )


def test_whole_model_on_one_rank():
    of = model(layer(), extra_params=512)
    assert rank_bytes(of) == 2 * (4 * LAYER + 2 * V * H + 512)


def test_matrices_are_shared_and_norms_are_not():
    of = model(layer())
    assert rank_bytes(of, tp=2) == 2 * (4 * ((ATTENTION + MLP) / 2 + 1024) + V * H)


def test_kv_heads_beyond_tp_are_replicated():
    of = model(layer())
    attention = (2 * H * 512) / 8 + 2 * H * 64
    assert rank_bytes(of, tp=8) == 2 * (4 * (attention + MLP / 8 + 1024) + 2 * V * H / 8)


def test_embedding_is_on_the_first_stage_and_head_on_the_last():
    of = model(layer(count=5), extra_params=512)
    assert rank_bytes(of, range(2), pp=3) == 2 * (2 * LAYER + V * H)
    assert rank_bytes(of, range(2, 4), pp=3) == 2 * 2 * LAYER
    assert rank_bytes(of, range(4, 5), pp=3) == 2 * (LAYER + V * H + 512)


def test_tied_embedding_is_copied_to_the_last_stage():
    of = model(layer(), tied_embeddings=True)
    assert rank_bytes(of) == 2 * (4 * LAYER + V * H)
    assert rank_bytes(of, range(2, 4), pp=2) == 2 * (2 * LAYER + V * H)


def test_rotary_tables_are_on_every_rank_and_the_vision_tower_on_the_first_stage():
    plain, more = model(layer()), model(layer(), position_elements=1000, vision_params=4000)
    assert rank_bytes(more, tp=2) - rank_bytes(plain, tp=2) == 2 * (1000 + 2000)
    assert rank_bytes(more, range(2, 4), pp=2) - rank_bytes(plain, range(2, 4), pp=2) == 2 * 1000


def test_types_by_part():
    of = model(layer(mlp=MOE))
    own = Quantization(attention="fp8", experts="int4", mlp="bf16")
    experts, shared, router = 8 * 3 * H * 256, 3 * H * 128, H * 8
    expected = ATTENTION * 1 + experts * (4.125 / 8) + (shared + router + 1024) * 2
    assert rank_bytes(of, quantization=own) == pytest.approx(4 * expected + 2 * 2 * V * H)


def test_every_rank_routes_among_all_experts():
    of = model(layer(mlp=MOE, count=1))
    experts, shared, router = 8 * 3 * H * 256, 3 * H * 128, H * 8
    expected = ATTENTION / 2 + experts / 2 + shared / 2 + router + 1024 + V * H
    assert rank_bytes(of, tp=2, ep=2) == 2 * expected
    assert rank_bytes(of, tp=2) == 2 * expected


def test_expert_matrices_are_padded():
    of = model(layer(mlp=MOE.model_copy(update={"expert_intermediate": 200}), count=1))
    engine = Activations(padding={"mxfp4": Padding(hidden=768, intermediate=128)})
    own = Quantization(experts="mxfp4", attention="bf16", mlp="bf16")
    grown = rank_bytes(of, quantization=own, engine=engine) - rank_bytes(of, quantization=own)
    assert grown == pytest.approx(8 * 3 * (768 * 256 - 512 * 200) * 4.25 / 8)


def test_latent_up_projections_are_kept_twice():
    of = model(layer(MLA, count=2))
    grown = rank_bytes(of, engine=Activations(mla_absorbed_copies=True), tp=2) - rank_bytes(of, tp=2)
    assert grown == 2 * 2 * 64 * 4 * (32 + 32)


def test_listed_tensors_correct_the_formulas():
    of = model(layer())
    listed = of.model_copy(update={"checkpoint_bytes": 1.1 * of.weight_bytes()})
    assert rank_bytes(listed, tp=2) == pytest.approx(1.1 * rank_bytes(of, tp=2))
    assert rank_bytes(listed, quantization=Quantization(weights="fp8")) == rank_bytes(
        of, quantization=Quantization(weights="fp8")
    )


def test_plan_reports_the_first_rank():
    of = model(layer(count=5))
    assert plan_of(of, pp=2, knobs=limits()).weights_bytes == rank_bytes(of, range(3), pp=2)
