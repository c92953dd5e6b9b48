"""Counts of a model against hand calculations and published numbers."""

import pytest

from sim.profiles.describe import describe
from sim.profiles.folders import names
from sim.profiles.layers import DenseMlp, GroupedAttention, LatentAttention, Layers, LinearAttention, MoeMlp
from sim.profiles.library import load_model
from sim.profiles.model import Model
from sim.profiles.model_yaml import to_yaml
from sim.profiles.quantization import Quantization
from sim.units import GIB, KIB
from sim.yamlfile import read_yaml, validate

GQA = GroupedAttention(heads=4, kv_heads=2, head_dim=8)


def model(*layers, **fields):
    defaults = {"hidden_size": 16, "vocab_size": 100, "max_position_embeddings": 64, "tied_embeddings": False}
    return Model(name="m", sources={"all": "hand"}, architecture="llama", layers=layers, **{**defaults, **fields})


def test_dense_model_by_hand():
    tiny = model(Layers(count=3, attention=GQA, mlp=DenseMlp(intermediate=24), norm_params=32), extra_params=16)
    attention = 16 * 4 * 8 + 2 * 16 * 2 * 8 + 4 * 8 * 16  # Q, K and V, O
    assert tiny.params_of("attention") == 3 * attention
    assert tiny.params_of("mlp") == 3 * 3 * 16 * 24
    assert tiny.params_of("embeddings") == tiny.params_of("head") == 1600
    assert tiny.params_of("other") == 3 * 32 + 16
    assert tiny.params == tiny.active_params == 3 * (attention + 1152 + 32) + 3200 + 16
    assert tiny.kv_bytes_per_token("bf16") == 3 * 2 * 2 * 8 * 2


def test_tied_head_is_counted_once():
    layer = Layers(count=1, attention=GQA, mlp=DenseMlp(intermediate=24))
    assert model(layer).params - model(layer, tied_embeddings=True).params == 1600


def test_only_the_chosen_experts_are_active():
    moe = MoeMlp(experts=8, top_k=2, expert_intermediate=4, shared_intermediate=6, expert_biases=5, extra_params=7)
    tiny = model(Layers(count=2, attention=GQA, mlp=moe))
    one = 3 * 16 * 4
    assert tiny.params_of("experts") == 2 * 8 * one
    assert tiny.params_of("mlp") == 2 * 3 * 16 * 6
    assert tiny.params_of("other") == 2 * (8 * 16 + 8 * 5 + 7)
    assert tiny.params - tiny.active_params == 2 * 6 * (one + 5)


def test_experts_on_a_latent_have_two_projections_beside_them():
    moe = MoeMlp(experts=8, top_k=2, expert_intermediate=4, latent=10, gated=False)
    tiny = model(Layers(count=1, mlp=moe))
    assert tiny.params_of("experts") == 8 * 2 * 10 * 4
    assert tiny.params_of("mlp") == 2 * 16 * 10


def test_windowed_and_full_layers_are_counted_apart():
    local = GQA.model_copy(update={"window": 8})
    tiny = model(
        Layers(count=2, attention=local, mlp=DenseMlp(intermediate=8)),
        Layers(count=1, attention=GQA, mlp=DenseMlp(intermediate=8)),
        order="ABA",
    )
    assert tiny.kv_bytes_per_token("bf16") == 64
    assert tiny.kv_bytes_per_token("bf16", windowed=True) == 128
    assert tiny.kv_bytes_per_token("fp8") == 32
    assert tiny.windows == (8,)
    assert [layer.attention.window for layer in tiny.stack] == [8, None, 8]


def test_order_must_match_the_counts():
    layer = Layers(count=2, attention=GQA, mlp=DenseMlp(intermediate=8))
    with pytest.raises(ValueError, match=r"order: has \{'A': 3\} layers by kind, where layers say \{'A': 2\}"):
        model(layer, order="AAA")


def test_a_latent_cache_is_the_same_on_every_rank():
    latent = LatentAttention(heads=4, kv_lora_rank=12, nope_head_dim=8, rope_head_dim=4, v_head_dim=8)
    (cache,) = model(Layers(count=1, attention=latent, mlp=DenseMlp(intermediate=8))).caches()
    assert cache.bytes_per_token("bf16") == cache.bytes_per_token("bf16", tp=8) == 32


def test_kv_heads_are_replicated_beyond_their_number():
    (cache,) = model(Layers(count=1, attention=GQA, mlp=DenseMlp(intermediate=8))).caches()
    assert [cache.bytes_per_token("bf16", tp=tp) for tp in (1, 2, 4, 8)] == [64, 32, 32, 32]


def test_state_does_not_count_as_kv():
    mixer = LinearAttention(params=100, state_bytes=12)
    tiny = model(Layers(count=3, attention=mixer, mlp=DenseMlp(intermediate=8)))
    assert tiny.state_bytes_per_sequence == 36
    assert tiny.kv_bytes_per_token("bf16") == 0


@pytest.mark.parametrize(
    ("quantization", "gib"),
    [
        (Quantization(), 14.96),  # 8.03e9 x 2 B
        (Quantization(weights="fp8"), 8.46),  # logged 8.49: 6.98e9 + 1.05e9 x 2 B, embeddings and head stay in bf16
        (Quantization(weights="int8"), 8.46),
        (Quantization(weights="int4"), 5.31),  # logged 5.38
        (Quantization(weights="fp32"), 29.92),  # all of it
        (Quantization(weights="q8_0"), 7.95),  # llama.cpp: 7.95 GiB
        (Quantization(weights="fp8", head="fp8"), 7.97),
        (Quantization(attention="fp8"), 13.71),
    ],
)
def test_weights_of_llama_8b(quantization, gib):
    assert load_model("meta-llama/Llama-3.1-8B-Instruct").weight_bytes(quantization) / GIB == pytest.approx(
        gib, abs=0.006
    )


def test_padding_of_mxfp4_experts():
    """2880 becomes 3072: 9.45 x 3072/2880 + 3.36 GiB; the model card says 12.8 and 60.8 GiB without padding."""
    small, large = load_model("openai/gpt-oss-20b"), load_model("openai/gpt-oss-120b")
    assert small.weight_bytes() / GIB == pytest.approx(12.8, abs=0.05)
    assert large.weight_bytes() / GIB == pytest.approx(60.8, abs=0.05)
    assert small.weight_bytes(mxfp4_multiple=256) / GIB == pytest.approx(13.44, rel=0.002)
    assert large.weight_bytes(mxfp4_multiple=256) / GIB == pytest.approx(64.38, rel=0.01)


def test_parts_of_gpt_oss():
    """OpenAI, gpt-oss model card (2025-08-05), table 1; it counts the unembedding as active, not the embedding."""
    for name, mlp, attention, embeddings, active, total in [
        ("openai/gpt-oss-120b", 114.71, 0.96, 1.16, 5.13, 116.83),
        ("openai/gpt-oss-20b", 19.12, 0.64, 1.16, 3.61, 20.91),
    ]:
        parts = load_model(name)
        assert parts.params_of("experts") / 1e9 == pytest.approx(mlp, rel=0.002)
        assert parts.params_of("attention") / 1e9 == pytest.approx(attention, abs=0.006)
        assert (parts.params_of("embeddings") + parts.params_of("head")) / 1e9 == pytest.approx(embeddings, abs=0.006)
        assert (parts.active_params - parts.params_of("embeddings")) / 1e9 == pytest.approx(active, abs=0.006)
        assert parts.params / 1e9 == pytest.approx(total, abs=0.006)


# Published with the models: model cards and technical reports; "counted without the embedding" where they say so.
PUBLISHED_ACTIVE = [
    ("mistralai/Mixtral-8x7B-v0.1", 12.9, 0),  # arXiv 2401.04088: 13 B, 12.9 in Mistral's documentation
    ("mistralai/Mixtral-8x22B-v0.1", 39, 0),  # mistral.ai/news/mixtral-8x22b
    ("deepseek-ai/DeepSeek-V2", 21, 0),  # arXiv 2405.04434
    ("deepseek-ai/DeepSeek-V2-Lite", 2.4, 1),  # arXiv 2405.04434, appendix B
    ("deepseek-ai/DeepSeek-V3", 37, 0),  # arXiv 2412.19437
    ("Qwen/Qwen3-235B-A22B", 22, 0),  # arXiv 2505.09388
    ("Qwen/Qwen3-30B-A3B", 3.3, 0),
    ("Qwen/Qwen1.5-MoE-A2.7B", 2.7, 0),
    ("moonshotai/Kimi-K2-Instruct", 32, 0),  # arXiv 2507.20534
    ("microsoft/Phi-3.5-MoE-instruct", 6.6, 0),  # model card
    ("databricks/dbrx-base", 36, 0),  # model card
    ("ai21labs/Jamba-v0.1", 12, 0),  # arXiv 2403.19887
    ("zai-org/GLM-4.5", 32, 1),  # arXiv 2508.06471
    ("meta-llama/Llama-4-Scout-17B-16E-Instruct", 17, 0),  # model card
    ("google/gemma-4-26B-A4B", 3.8, 0),  # model card
    ("deepseek-ai/DeepSeek-V4-Flash", 13, 1),  # model card
    ("deepseek-ai/DeepSeek-V4-Pro", 49, 1),
]


@pytest.mark.parametrize(("name", "billions", "without_embedding"), PUBLISHED_ACTIVE)
def test_published_active_parameters(name, billions, without_embedding):
    found = load_model(name)
    active = found.active_params - without_embedding * found.params_of("embeddings")
    assert active / 1e9 == pytest.approx(billions, rel=0.03)


# The table that articles print: nominal bits, 10^9 bytes; KV in 16 bit.
FOUR_MODELS = [
    ("meta-llama/Llama-3.1-8B-Instruct", (16, 8, 4), 128, 16),
    ("meta-llama/Llama-3.3-70B-Instruct", (141, 71, 35), 320, 40),
    ("Qwen/Qwen3-235B-A22B", (470, 235, 118), 188, 23.5),
    ("moonshotai/Kimi-K2.5", (2080, 1040, 520), 69, 8.6),
]


@pytest.mark.parametrize(("name", "weights_gb", "kv_kib", "kv_gib_at_128k"), FOUR_MODELS)
def test_published_table(name, weights_gb, kv_kib, kv_gib_at_128k):
    found = load_model(name)
    nominal = [size / 1e9 for size in describe(found)["nominal_weight_bytes"].values()]
    # The article takes the 1.04 T of the Kimi K2 report; the checkpoint's tensors are 1.026 T, which is what loads.
    assert nominal == pytest.approx(weights_gb, abs=0.5, rel=0.014 if "Kimi" in name else 0)
    assert found.kv_bytes_per_token("bf16") / KIB == pytest.approx(kv_kib, abs=0.5)
    assert found.kv_bytes_per_token("bf16") * 131_072 / GIB == pytest.approx(kv_gib_at_128k, abs=0.05)


def test_kv_of_70b_at_eight_sequences_of_8k_is_20_gib():
    """An article says 80 GiB, four times too much: that would take 32 KV heads a layer, where grouped attention has 8.

    2 x 80 layers x 8 KV heads x 128 x 2 B = 320 KiB a token; times 65,536 tokens.
    """
    kv = load_model("meta-llama/Llama-3.3-70B-Instruct").kv_bytes_per_token("bf16")
    assert kv == 2 * 80 * 8 * 128 * 2
    assert kv * 8 * 8192 / GIB == 20


def test_exact_weights_win_over_the_count():
    layer = Layers(count=1, attention=GQA, mlp=DenseMlp(intermediate=24))
    listed = model(layer, checkpoint_bytes=10_000.0, vision_params=100)
    assert listed.weight_bytes() == 10_000 - 200
    assert listed.weight_bytes(Quantization(weights="fp32")) == 4 * listed.params


@pytest.mark.parametrize(
    "name", ["openai/gpt-oss-20b", "deepseek-ai/DeepSeek-V3.2", "Qwen/Qwen3.5-27B", "Qwen/Qwen3-8B"]
)
def test_a_profile_survives_writing_and_reading(name, tmp_path):
    path = tmp_path / "new" / "m.yaml"
    to_yaml(load_model(name), path)
    assert validate(Model, read_yaml(path)) == load_model(name)


def test_every_profile_is_whole():
    for name in names("models"):
        found = load_model(name)
        assert found.name == name
        assert found.sources["all"]
        assert 0 < found.active_params <= found.params
        assert len(found.stack) == found.num_layers
        assert found.kv_bytes_per_token() + found.kv_bytes_per_token(windowed=True) + found.state_bytes_per_sequence > 0


def test_names_that_people_use_are_unambiguous():
    spellings = {}
    for name in names("models"):
        for alias in (name, *load_model(name).aliases):
            assert spellings.setdefault(alias.casefold(), name) == name


def test_description_has_counts_not_billions():
    numbers = describe(load_model("google/gemma-3-27b-it"))
    assert numbers["params"] == 27_009_346_304  # tensors of the language model in its checkpoint
    assert numbers["kv_bytes_per_token"] == 81_920
    assert numbers["windowed_kv_bytes_per_token"] == 425_984
    assert numbers["windows"] == [1024]
    assert numbers["layers"] == 62
