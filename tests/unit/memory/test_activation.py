"""The profiled peak, by hand."""

import pytest
from handmade_memory import MLA, MOE, PLAIN, card, layer, limits, model, plan_of

from sim.profiles.engine_memory import Activations
from sim.profiles.model import Indexer
from sim.profiles.quantization import Quantization

TOKENS, HIDDEN, VOCAB = 256, 512, 1024


def peak(of, engine, stage=0, **options):
    memory = PLAIN.model_copy(update={"activations": engine})
    return plan_of(of, memory=memory, **options).ranks[stage].activation_bytes


def test_forward_pass_of_a_dense_model():
    # four tensors of hidden size; gate and up, and their product
    assert peak(model(layer()), Activations(forward_hidden_copies=4)) == TOKENS * 2 * (4 * HIDDEN + 3 * 2048)


def test_tensor_parallelism_shares_the_feed_forward_part_only():
    engine = Activations(forward_hidden_copies=4)
    assert peak(model(layer()), engine, tp=2) == TOKENS * 2 * (4 * HIDDEN + 3 * 1024)


def test_sampler_takes_the_whole_vocabulary_on_every_rank():
    engine = Activations(sampler_bytes=14, sampler_hidden_copies=2)
    knobs = limits(max_num_seqs=1024)
    expected = 14 * 1024 * VOCAB + 2 * TOKENS * HIDDEN * 2
    assert peak(model(layer()), engine, knobs=knobs) == expected
    assert peak(model(layer()), engine, knobs=knobs, tp=4) == expected


def test_first_stages_have_no_sampler_and_keep_what_they_send():
    engine = Activations(sampler_bytes=1000, sampler_hidden_copies=2)
    first, middle, last = (peak(model(layer()), engine, stage, pp=3) for stage in range(3))
    hidden = TOKENS * HIDDEN * 2
    assert first == TOKENS * 2 * 3 * 2048 + 2 * hidden
    assert middle == first + 2 * hidden
    assert last == 1000 * 16 * VOCAB + 4 * hidden


def test_workspace_of_experts():
    # rows of top 2: max(256, 512) + max(512, 512); output 512; shared experts 3 x 128
    workspace = TOKENS * 2 * (2 * (512 + 512) + 512)
    assert peak(model(layer(mlp=MOE)), Activations()) == workspace + TOKENS * 2 * 3 * 128


def test_workspace_is_held_while_sampling_for_some_types():
    engine = Activations(sampler_bytes=1000, moe_workspace_held=("bf16",))
    released = Activations(sampler_bytes=1000)
    of = model(layer(mlp=MOE))
    assert peak(of, engine) - peak(of, released) == TOKENS * 2 * (2 * (512 + 512) + 512)


def test_latents_of_past_tokens_are_expanded():
    engine = Activations(mla_context_tokens=10**6)
    # at most 8 x max_model_len of them, 8 heads of 32 + 32
    assert peak(model(layer(MLA)), engine) == 8 * 1024 * 8 * (32 + 32) * 2


@pytest.mark.parametrize(("vendor", "expected"), [("NVIDIA", 1000), ("AMD", 4 * TOKENS * 1024)])
def test_indexer_scores_a_batch_against_the_context(vendor, expected):
    sparse = MLA.model_copy(update={"indexer": Indexer(heads=2, head_dim=128, top_k=64, params=0)})
    engine = Activations(index_logits_bytes=4, index_logits_cap_bytes={"NVIDIA": 1000})
    of = model(layer(sparse))
    without = peak(of, Activations())
    assert peak(of, engine, on=card(vendor=vendor)) - without == expected


def test_vision_and_fixed_parts():
    engine = Activations(fixed_bytes=7, vision_bytes=11)
    assert peak(model(layer()), engine) - peak(model(layer()), Activations()) == 7
    seeing = model(layer(), vision_params=10)
    assert peak(seeing, engine) - peak(seeing, Activations()) == 18


def test_fp32_doubles_every_tensor():
    engine = Activations(forward_hidden_copies=4)
    of = model(layer())
    assert peak(of, engine, quantization=Quantization(weights="fp32")) == 2 * peak(of, engine)
    assert plan_of(of, quantization=Quantization(weights="fp32")).kv_bytes_per_token == (
        2 * plan_of(of).kv_bytes_per_token
    )
