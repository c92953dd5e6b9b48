"""Start-up logs as people write them down."""

import json

import pytest

from calibration.cases.memory import COLUMNS, LOGGED, MemoryCase, read_cases
from calibration.cases.not_modelled import NotModelledError
from calibration.validation.memory import validate_memory
from sim.errors import TraceError
from sim.units import GIB

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
ROW = {
    "case": "a",
    "model": "meta-llama/Llama-3.1-8B",
    "config_file": "config.json",
    "gpu": "H100-80GB",
    "gpu_mem_gib": "79.19",
    "tp": "1",
    "pp": "1",
    "dtype_quant": "bfloat16",
    "kv_dtype": "auto",
    "gpu_memory_utilization": "0.95",
    "max_model_len": "8192",
    "block_size": "16",
    "vllm_version": "0.19.0",
    "max_num_batched_tokens": "8192 (server default, logged)",
    "status": "ok",
    "notes": "",
    **dict.fromkeys(LOGGED.values(), ""),
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


def case(folder, **cells):
    return MemoryCase(ROW | cells, folder)


def write(folder, *rows):
    lines = [",".join(ROW), *(",".join(f'"{cell}"' for cell in (ROW | row).values()) for row in rows)]
    path = folder / "cases.csv"
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize(
    ("text", "value"),
    [("8192 (default)", 8192), ("~50", 50), ("? (0.9 likely)", 0.9), ("?", None), ("", None), ("-1.05", -1.05)],
)
def test_first_number_of_a_cell(folder, text, value):
    assert case(folder, gpu_mem_gib=text).number("gpu_mem_gib") == value


def test_deployment_of_a_row(folder):
    made = case(folder, tp="2").deployment()
    assert (made.parallelism.tp, made.limits.max_num_seqs, made.limits.max_num_batched_tokens) == (2, 1024, 8192)
    assert made.hardware.name == "H100-SXM-80GB"
    assert made.hardware.visible_memory_bytes == 79.19 * GIB


@pytest.mark.parametrize(
    ("cells", "weights", "experts", "kv"),
    [
        ({}, None, None, None),
        ({"kv_dtype": "fp8"}, None, None, "fp8"),
        ({"dtype_quant": "float16/gptq_marlin", "model": "x-quantized.w4a16"}, "int4", None, "bf16"),
        ({"dtype_quant": "bfloat16/compressed-tensors", "model": "x-quantized.w8a8"}, "int8", None, "bf16"),
        ({"dtype_quant": "bfloat16/compressed-tensors", "model": "x-FP8-dynamic"}, "fp8", None, "bf16"),
        ({"dtype_quant": "awq int4"}, "int4", None, "bf16"),
        ({"dtype_quant": "int4 experts (compressed-tensors)"}, "bf16", "int4_g32", "bf16"),
        ({"dtype_quant": "float32"}, "fp32", None, "fp32"),
    ],
)
def test_types_in_words(folder, cells, weights, experts, kv):
    types = case(folder, **cells).deployment().quantization
    assert (types.weights, types.experts, types.kv_cache) == (weights, experts, kv)


@pytest.mark.parametrize(("text", "seqs"), [("~0.9/0.10 (2025-07)", 1024), ("0.2.4 -> 0.2.5", 256), ("main", 1024)])
def test_version_in_words(folder, text, seqs):
    assert case(folder, vllm_version=text).deployment().limits.max_num_seqs == seqs


def test_unknown_card_needs_its_memory_only(folder):
    made = case(folder, gpu="RTX 4060 8GB", gpu_mem_gib="8.0").deployment()
    assert made.hardware.visible_memory_bytes == 8 * GIB
    with pytest.raises(NotModelledError, match="unknown card"):
        case(folder, gpu="?", gpu_mem_gib="").deployment()


def test_a_length_that_was_not_logged_is_one_that_fits(folder):
    made = case(folder, max_model_len="", gpu_mem_gib="24").deployment()
    assert 0 < made.limits.max_model_len < 131_072


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"config_file": ""}, "no config.json"),
        ({"config_file": "config.json (nearest)"}, "another model"),
        ({"config_file": "missing.json"}, "missing.json"),
        ({"notes": "decode-context-parallel 8"}, "decode context"),
        ({"notes": "vision tower in weights"}, "lacks the vision tower"),
    ],
)
def test_what_is_not_modelled_is_skipped_with_the_reason(folder, cells, reason):
    report = validate_memory(write(folder, cells, {}))
    assert reason in report["cases"][0]["skipped"]
    assert report["cases"][1]["skipped"] is None
    assert [group["n"] for group in report["summary"]["skipped"].values()] == [1]


def test_report_of_a_file(folder):
    path = write(
        folder,
        {"logged_kv_gib": "58.11", "logged_weights_gib": "14.99", "logged_activation_gib": "1.89"}
        | {"logged_non_torch_gib": "0.25", "logged_kv_tokens": "476016"},
        {"case": "b", "status": "FAILS: no memory", "gpu_mem_gib": "8"},
    )
    first, second = validate_memory(path)["cases"]
    assert first["predicted"]["kv_gib_identity"] == pytest.approx(58.11, abs=0.011)
    assert first["predicted"]["kv_tokens_identity"] == pytest.approx(476_016, rel=1e-4)
    assert abs(first["error_pct"]["kv_gib_of_card"]) < 0.1
    assert (second["predicted"]["fits"], second["measured"]["fits"]) == (False, False)


def test_a_file_without_the_columns_is_refused(tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(TraceError, match=f"no column '{COLUMNS[0]}'"):
        list(read_cases(path, None, {}))
