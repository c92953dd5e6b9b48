"""`quantization_config`: which part of the weights is stored in which type."""

import json
import time

import pytest

from sim.errors import ProfileError
from sim.profiles.huggingface import read

MOE = {
    "model_type": "deepseek_v3",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "vocab_size": 1000,
    "max_position_embeddings": 512,
    "n_routed_experts": 8,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "first_k_dense_replace": 1,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 8,
}


@pytest.fixture
def types(tmp_path):
    """Return the types by part that a quantization_config gives, as a dictionary, and the notes."""

    def of(quantization, nested=False):
        inner = {**MOE, "quantization_config": quantization}
        path = tmp_path / "m.json"
        path.write_text(json.dumps({"model_type": "kimi_k25", "text_config": inner} if nested else inner))
        model = read(path)
        return model.checkpoint.model_dump(exclude_none=True), model.notes

    return of


def linear(bits, kind, group=None, inputs=True, **more):
    weights = {"num_bits": bits, "type": kind, "group_size": group, "strategy": "group" if group else "channel"}
    activations = {"num_bits": bits, "type": kind, "group_size": group} if inputs else None
    groups = {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": activations}}
    return {"quant_method": "compressed-tensors", "config_groups": groups, "ignore": ["lm_head"], **more}


@pytest.mark.parametrize(
    ("quantization", "dtype", "activations"),
    [
        ({"quant_method": "fp8", "activation_scheme": "dynamic"}, "fp8", "fp8"),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8_block", "fp8"),
        ({"quant_method": "fbgemm_fp8"}, "fp8", "fp8"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "int4", None),
        ({"quant_method": "gptq", "bits": 4, "group_size": 32}, "int4_g32", None),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, "int8", None),
        ({"quant_method": "mxfp4"}, "mxfp4", None),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8", "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4", "nvfp4"),
        (linear(8, "float"), "fp8", "fp8"),
        (linear(8, "int"), "int8", "int8"),
        (linear(8, "int", inputs=False), "int8", None),
        (linear(4, "int", 128, inputs=False), "int4", None),
        (linear(4, "int", 64, inputs=False), "int4_g64", None),
        (linear(4, "float", 16), "nvfp4", "nvfp4"),
        (linear(4, "float", 32, inputs=False), "mxfp4", None),
    ],
)
def test_methods(types, quantization, dtype, activations):
    expected = {"attention": dtype, "mlp": dtype, "experts": dtype}
    assert types(quantization)[0] == expected | ({"activations": activations} if activations else {})


@pytest.mark.parametrize(
    ("ignore", "parts"),
    [
        (["lm_head", "re:.*self_attn.*"], {"mlp", "experts"}),
        (
            ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*", "re:.*mlp\\.(gate|up|gate_up|down)_proj.*"],
            {"experts"},
        ),
        (["lm_head", *(f"model.layers.{index}.self_attn*" for index in range(4))], {"mlp", "experts"}),
        (
            ["language_model.lm_head", *(f"language_model.model.layers.{i}.self_attn*" for i in range(4))],
            {"mlp", "experts"},
        ),
        (["lm_head", "model.layers.*.self_attn"], {"mlp", "experts"}),
        (["lm_head", *(f"model.layers.{i}.self_attn.{p}_proj" for i in range(4) for p in "qkvo")], {"mlp", "experts"}),
        (["lm_head", "self_attn"], {"mlp", "experts"}),
        (["lm_head", "gate", "mtp*", "mtp.layers.0*", "model.visual*"], {"attention", "mlp", "experts"}),
        ([], {"attention", "mlp", "experts", "head"}),
    ],
)
def test_ignored_parts(types, ignore, parts):
    found, notes = types(linear(4, "int", 128, inputs=False, ignore=ignore), nested=True)
    assert set(found) == parts
    assert not notes


def test_groups_with_targets(types):
    weights = [{"num_bits": 8, "type": "float"}, {"num_bits": 4, "type": "float", "group_size": 16}]
    targets = [
        [f"model.layers.{index}.self_attn.q_proj" for index in range(4)],
        ["lm_head", "re:.*mlp.experts.*"],
    ]
    groups = {str(n): {"targets": t, "weights": w} for n, (t, w) in enumerate(zip(targets, weights, strict=True))}
    found, _ = types({"quant_method": "modelopt", "config_groups": groups, "ignore": []})
    assert found == {"attention": "fp8", "experts": "nvfp4", "head": "nvfp4"}


def test_a_part_that_is_stored_in_two_types_is_noted(types):
    found, notes = types({"quant_method": "fp8", "modules_to_not_convert": ["model.layers.0.self_attn.q_proj"]})
    assert found["attention"] == "fp8"
    assert "attention: 3 of 4 modules are fp8" in notes


def test_a_quantised_kv_cache(types):
    scheme = {"num_bits": 8, "type": "float", "dynamic": False}
    assert types(linear(8, "float", kv_cache_scheme=scheme))[0]["kv_cache"] == "fp8"


def test_the_companion_file_of_modelopt(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(MOE))
    inner = {
        "quant_algo": "NVFP4",
        "kv_cache_quant_algo": "FP8",
        "exclude_modules": ["lm_head", "model.layers.*.self_attn*"],
    }
    (tmp_path / "hf_quant_config.json").write_text(
        json.dumps({"producer": {"name": "modelopt"}, "quantization": inner})
    )
    found = read(tmp_path).checkpoint.model_dump(exclude_none=True)
    assert found == {"mlp": "nvfp4", "experts": "nvfp4", "activations": "nvfp4", "kv_cache": "fp8"}


def test_an_unreadable_list_of_ignored_modules_is_noted(types):
    _, notes = types(linear(8, "float", ignore="<<449 entries dropped>>"))
    assert "quantization_config.ignore is no list" in notes


@pytest.mark.parametrize(
    ("quantization", "message"),
    [
        (
            {"quant_method": "awk"},
            "quant_method: 'awk' is not a quantisation that this program reads (did you mean 'awq'",
        ),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "quant_method: 'bitsandbytes' is not"),
        ({}, "quant_method: '' is not a quantisation"),
        ({"quant_method": "gptq", "bits": 3, "group_size": 128}, "bits: 3 bits int in groups of 128 is not supported"),
        ({"quant_method": "gptq", "bits": "four"}, "bits: 'four' is not a whole number"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP5"}, "quant_algo: 'NVFP5' is not an algorithm"),
        (linear(8, "float", ignore=["re:(a+)+$"]), "ignore: '(a+)+$' is too complex a regular expression"),
        (linear(8, "float", ignore=["re:(a"]), "ignore: '(a' is not a regular expression"),
        (linear(8, "float", ignore=[3]), "ignore: 3 is not the name of a module"),
        ({"quant_method": "compressed-tensors", "config_groups": {}}, "config_groups: is empty"),
        ({"quant_method": "compressed-tensors", "config_groups": {"a": {}}}, "config_groups.a.weights: missing"),
    ],
)
def test_unknown_quantisations_are_refused(types, quantization, message):
    with pytest.raises(ProfileError) as caught:
        types(quantization)
    assert f"quantization_config.{message}" in str(caught.value)


def test_thousands_of_ignored_modules_take_no_time(types):
    ignore = [f"model.layers.{layer}.mlp.experts.{expert}*" for layer in range(8) for expert in range(500)]
    start = time.process_time()
    types(linear(8, "float", ignore=ignore))
    assert time.process_time() - start < 3
