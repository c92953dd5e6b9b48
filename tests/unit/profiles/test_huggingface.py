"""Reading a config.json: the traps that checkpoints set, and what is refused."""

import json
import pickle
import struct

import pytest

from sim.errors import ProfileError
from sim.profiles.huggingface import read
from sim.profiles.huggingface.families import readers
from sim.profiles.library import load_model

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "max_position_embeddings": 512,
}
MOE = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32}


@pytest.fixture
def config(tmp_path):
    """Write a Llama config with some keys changed, or left out where they are `...`, and return its path."""

    def write(base=LLAMA, **changes):
        data = {key: value for key, value in {**base, **changes}.items() if value is not ...}
        path = tmp_path / "m.json"
        path.write_text(json.dumps(data))
        return path

    return write


def attention(model, index=0):
    return model.stack[index].attention


# Heads


def test_a_missing_head_dim_is_the_share_of_the_hidden_size(config):
    assert attention(read(config())).head_dim == 8
    assert attention(read(config(head_dim=32))).head_dim == 32


def test_missing_kv_heads_mean_one_for_each_head(config):
    assert attention(read(config(num_key_value_heads=...))).kv_heads == 8
    assert attention(read(config(num_key_value_heads=None))).kv_heads == 8


def test_latent_attention_ignores_kv_heads_and_head_dim(config):
    latent = {"kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8, "head_dim": 192}
    model = read(config(model_type="deepseek_v3", n_routed_experts=8, **{**MOE, "num_experts": ...}, **latent))
    assert model.kv_bytes_per_token("bf16") == 4 * (16 + 4) * 2


# Windows


@pytest.mark.parametrize(
    ("changes", "windows"),
    [
        ({"model_type": "mistral", "sliding_window": 100}, [100] * 4),
        ({"model_type": "mistral", "sliding_window": None}, [None] * 4),
        ({"model_type": "mistral", "sliding_window": 512}, [None] * 4),  # covers the whole context
        ({"model_type": "qwen2", "sliding_window": 100, "use_sliding_window": False}, [None] * 4),
        (
            {"model_type": "qwen2", "sliding_window": 100, "use_sliding_window": True, "max_window_layers": 3},
            [None, None, None, 100],
        ),
        (
            {"model_type": "qwen3", "sliding_window": 100, "layer_types": ["sliding_attention", "full_attention"] * 2},
            [100, None, 100, None],
        ),
        ({"model_type": "gemma2", "sliding_window": 100}, [100, None, 100, None]),
        ({"model_type": "gemma3_text", "sliding_window": 100, "sliding_window_pattern": 4}, [100, 100, 100, None]),
        (
            {
                "model_type": "gemma3_text",
                "sliding_window": 100,
                "layer_types": ["full_attention", "sliding_attention"] * 2,
            },
            [None, 100, None, 100],
        ),
    ],
)
def test_windows(config, changes, windows):
    assert [layer.attention.window for layer in read(config(**changes)).stack] == windows


# Embeddings


@pytest.mark.parametrize(("kind", "tied"), [("llama", False), ("qwen3", False), ("gemma", True), ("cohere", True)])
def test_what_a_missing_tie_means_depends_on_the_family(config, kind, tied):
    assert read(config(model_type=kind)).tied_embeddings is tied
    assert read(config(model_type=kind, tie_word_embeddings=not tied)).tied_embeddings is not tied


def test_gemma3_fills_in_what_its_larger_models_leave_out(config):
    text = {key: value for key, value in LLAMA.items() if key not in ("vocab_size", "max_position_embeddings")}
    model = read(config({"model_type": "gemma3", "text_config": {**text, "model_type": "gemma3_text"}}))
    assert (model.vocab_size, model.max_position_embeddings) == (262_208, 131_072)


# Experts


@pytest.mark.parametrize(
    ("changes", "sparse"),
    [
        ({"model_type": "qwen3_moe", "decoder_sparse_step": 2}, [False, True, False, True]),
        ({"model_type": "qwen3_moe", "mlp_only_layers": [0, 3]}, [False, True, True, False]),
        ({"model_type": "glm4_moe", "first_k_dense_replace": 1}, [False, True, True, True]),
        ({"model_type": "glm4_moe", "moe_layer_freq": [0, 1, 0, 1]}, [False, True, False, True]),
        ({"model_type": "llama4_text", "interleave_moe_layer_step": 2, "intermediate_size_mlp": 96}, [False, True] * 2),
    ],
)
def test_which_layers_have_experts(config, changes, sparse):
    assert [layer.mlp.kind == "moe" for layer in read(config(**MOE, **changes)).stack] == sparse


@pytest.mark.parametrize(
    ("kind", "width"),
    [("mixtral", 96), ("minimax_m2", 96), ("gpt_oss", 96), ("llama4_text", 96), ("qwen3_moe", 32), ("glm4_moe", 32)],
)
def test_whose_size_intermediate_size_is(config, kind, width):
    changes = {} if width == 32 else {"moe_intermediate_size": ...}
    model = read(config(model_type=kind, **{**MOE, **changes}))
    assert next(layer for layer in model.layers if layer.mlp.kind == "moe").mlp.expert_intermediate == width


@pytest.mark.parametrize("name", ["num_experts", "num_local_experts", "n_routed_experts"])
def test_names_of_the_number_of_experts(config, name):
    moe = {**MOE, "num_experts": ..., name: 8}
    assert read(config(model_type="qwen3_moe", **moe)).layers[0].mlp.experts == 8


# Data types and tables


@pytest.mark.parametrize(
    ("changes", "dtype"),
    [
        ({"torch_dtype": "float16"}, "fp16"),
        ({"dtype": "bfloat16"}, "bf16"),
        ({"torch_dtype": "float32"}, "bf16"),  # engines load fp32 checkpoints in 16 bit
        ({}, "bf16"),
    ],
)
def test_dtypes(config, changes, dtype):
    assert read(config(**changes)).dtype == dtype


@pytest.mark.parametrize(
    ("scaling", "elements"),
    [
        (None, 512 * 8),
        ({"rope_type": "llama3", "factor": 8.0}, 512 * 8),
        ({"rope_type": "linear", "factor": 8.0}, 8 * 512 * 8),
        ({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 256}, 4 * 256 * 8),
        ({"type": "mrope", "mrope_section": [1, 1, 2]}, 4 * 512 * 8),
    ],
)
def test_rotary_tables(config, scaling, elements):
    assert read(config(rope_scaling=scaling)).position_elements == elements


def test_infinity_in_a_key_of_no_interest(config):
    path = config(time_step_limit=[0.0, float("inf")])
    assert "Infinity" in path.read_text()
    assert read(path).num_layers == 4


# Where the weights are listed


def safetensors(path, **tensors):
    header = json.dumps({name: {"dtype": "BF16", "shape": [1], "data_offsets": at} for name, at in tensors.items()})
    path.write_bytes(struct.pack("<Q", len(header)) + header.encode() + bytes(8))


def test_weights_from_safetensors_headers(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    safetensors(tmp_path / "model-1.safetensors", a=[0, 600], b=[600, 1000])
    safetensors(tmp_path / "model-2.safetensors", c=[0, 24])
    assert read(tmp_path).weight_bytes() == 1024
    assert read(tmp_path / "model-1.safetensors") == read(tmp_path)
    assert load_model(str(tmp_path)).name == tmp_path.name


def test_weights_from_an_index(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 4096}, "weight_map": {}}))
    assert read(tmp_path / "config.json").weight_bytes() == 4096
    assert read(index) == read(tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"", bytes(4), struct.pack("<Q", 2**60), struct.pack("<Q", 4) + b"{oh}", struct.pack("<Q", 9) + b'{"a": []}'],
)
def test_broken_safetensors(tmp_path, content):
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(ProfileError, match=r"model\.safetensors"):
        read(tmp_path)


# What is refused, in one line with file and key


def refused(path):
    with pytest.raises(ProfileError) as caught:
        read(path)
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith(str(path))
    return text.removeprefix(str(path))


UNKNOWN = "is not an architecture that this program reads: write a profile of the model (docs/extending.md)"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "lama"}, "model_type: 'lama' is not an architecture that this program reads (did you mean"),
        ({"model_type": "retnet"}, f"model_type: 'retnet' {UNKNOWN}"),
        ({"model_type": "llama9"}, f"model_type: 'llama9' {UNKNOWN}"),
        ({"model_type": ...}, "model_type: missing: a config.json names its architecture there"),
        ({"model_type": 3}, "model_type: 3 is not a text"),
        ({"hidden_size": ...}, "hidden_size: missing, and this architecture (llama) needs it"),
        ({"hidden_size": None}, "hidden_size: missing, and this architecture (llama) needs it"),
        ({"hidden_size": "4096"}, "hidden_size: '4096' is not a whole number"),
        ({"hidden_size": [4096]}, "hidden_size: [4096] is not a whole number"),
        ({"hidden_size": float("nan")}, "hidden_size: nan is not a whole number"),
        ({"hidden_size": float("inf")}, "hidden_size: inf is not a whole number"),
        ({"hidden_size": 64.0}, "hidden_size: 64.0 is not a whole number"),
        ({"hidden_size": True}, "hidden_size: True is not a whole number"),
        ({"hidden_size": 10**400}, "hidden_size: a number of 1329 bits is not between 1 and 1000000"),
        ({"num_attention_heads": 0}, "num_attention_heads: 0 is not between 1 and"),
        ({"num_attention_heads": 7}, "num_attention_heads: 7 heads do not divide hidden_size 64"),
        ({"num_key_value_heads": 3}, "num_key_value_heads: 3 KV heads do not divide 8 heads"),
        ({"num_key_value_heads": -1}, "num_key_value_heads: -1 is not between 1 and"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers: 1000000000 is not between 1 and 1000"),
        ({"vocab_size": {"a": 1}}, "vocab_size: {'a': 1} is not a whole number"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings: 'yes' is neither true nor false"),
        ({"torch_dtype": "float8"}, "torch_dtype: 'float8' is none of bfloat16, float16, float32"),
        ({"rope_scaling": "linear"}, "rope_scaling: 'linear' is not an object"),
        ({"rope_scaling": {"rope_type": "linear", "factor": -1}}, "rope_scaling.factor: -1 is not a positive number"),
        ({"text_config": []}, "text_config: [] is not an object"),
        ({"quantization_config": 8}, "quantization_config: 8 is not an object"),
        ({"num_local_experts": 8}, "num_local_experts: 8 is not what this program knows of llama"),
        ({"kv_lora_rank": 8}, "kv_lora_rank: 8 is not what this program knows of llama"),
        (
            {"layer_types": ["linear_attention"] * 4},
            "layer_types: 'linear_attention' is none of full_attention, sliding",
        ),
        (
            {"model_type": "gemma", "layer_types": ["sliding_attention"] * 4},
            "layer_types: ['sliding_attention', 'sliding_attention', 'sliding_atten... is not what this program",
        ),
        (
            {"model_type": "mixtral", "num_local_experts": 2, "num_experts_per_tok": 4},
            "num_experts_per_tok: 4 of only 2",
        ),
        ({"model_type": "gemma2", "layer_types": ["full_attention"]}, "layer_types: has 1 entries for 4 layers"),
        (
            {"model_type": "gemma2", "layer_types": ["full"] * 4},
            "layer_types: 'full' is none of full_attention, sliding",
        ),
        (
            {"model_type": "nemotron_h", "hybrid_override_pattern": "M?M*"},
            "hybrid_override_pattern: 'M?M*' is not 4 letters",
        ),
        ({"model_type": "nemotron-nas", "block_configs": [1] * 4}, "block_configs.0: 1 is not an object"),
        ({"model_type": "dbrx", "d_model": 64}, "attn_config: missing, and this architecture (dbrx) needs it"),
    ],
)
def test_a_bad_value_is_refused_with_its_key(config, changes, message):
    assert f": {message}" in refused(config(**changes))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", ":1: is not JSON"),
        (b"{", ":1: is not JSON"),
        (b"[1, 2]", "is not a JSON object but a list"),
        (b"null", "is not a JSON object but a NoneType"),
        (b"x" * 10_000_000, "is larger than 8 MiB"),
        (b"[" * 200_000, "it is nested too deeply"),
        (b'{"a": ' + b"9" * 100_000 + b"}", "a number in it has too many digits"),
        (pickle.dumps({"model_type": "llama"}), "is not JSON: byte 0 is not UTF-8 text"),
        (b"\xff\xfe\x00", "is not JSON: byte 0 is not UTF-8 text"),
        (b"model_type: llama\n", ":1: is not JSON"),
    ],
)
def test_what_is_no_config_is_refused(tmp_path, content, message):
    path = tmp_path / "m.json"
    path.write_bytes(content)
    assert message in refused(path)


class Bomb:
    """Would leave a trace if anything unpickled it."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return open, (str(self.target), "w")


def test_a_pickle_is_never_executed(tmp_path):
    path, target = tmp_path / "config.json", tmp_path / "executed"
    path.write_bytes(pickle.dumps(Bomb(target)))
    refused(path)
    assert not target.exists()


def test_missing_files(tmp_path):
    assert "there is no such file" in refused(tmp_path / "m.json")
    with pytest.raises(ProfileError, match=r"config\.json: there is no such file"):
        read(tmp_path)


def test_every_reader_refuses_an_empty_config_with_a_key(config):
    for kind in readers():
        assert ": " in refused(config({"model_type": kind}))
