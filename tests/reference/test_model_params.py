"""106 published configs: each is read or refused with a reason, and its counts agree with what others measured."""

import csv

import pytest

from sim.profiles.huggingface import read
from sim.units import GIB
from tests.conftest import SHARED

pytestmark = pytest.mark.shared
MEMORY = SHARED / "data" / "memory"


def rows():
    if not MEMORY.is_dir():
        return []
    with (MEMORY / "configs.csv").open() as file:
        return list(csv.DictReader(file))


ROWS = {row["name"]: row for row in rows()}


@pytest.fixture(scope="module")
def models():
    return {name: read(MEMORY / row["file"]) for name, row in ROWS.items()}


def test_all_configs_are_read(models):
    assert len(models) == 106
    noted = {name for name, model in models.items() if model.notes and "MTP" not in model.notes}
    assert noted == {
        "RedHatAI/Llama-4-Scout-17B-16E-Instruct-FP8-dynamic",  # its list of ignored modules was dropped
        "meta-llama/Meta-Llama-3.1-405B-Instruct-FP8",  # the first and last layer are not quantised
        "moonshotai/Kimi-K3",  # attention residuals and vision tower of unknown shape
    }


def counted():
    return [name for name, row in ROWS.items() if row["total_b"]]


@pytest.mark.parametrize("name", counted())
def test_counts_of_an_independent_program(models, name):
    """Its counts of DeepSeek V4, MiniMax-M3 and Step-3.7 are marked as approximate; ours follow transformers 5.24."""
    model, row = models[name], ROWS[name]
    exact = not name.startswith(("deepseek-ai/DeepSeek-V4", "MiniMaxAI/MiniMax-M3", "stepfun-ai"))
    assert model.params / 1e9 == pytest.approx(float(row["total_b"]), rel=1e-5 if exact else 1e-3)
    assert model.active_params / 1e9 == pytest.approx(float(row["active_b"]), rel=1e-4 if exact else 1e-2)


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row["published_total_b"]])
def test_published_totals(models, name):
    published = float(ROWS[name]["published_total_b"])
    whole = models[name].params + models[name].vision_params
    assert min(abs(count / 1e9 / published - 1) for count in (models[name].params, whole)) < 0.02


@pytest.mark.parametrize("name", list(ROWS))
def test_kv_and_state(models, name):
    """OLMo 3 has windows by default (`Olmo3Config`), K3 keeps convolution inputs, too: the table has neither."""
    model, row = models[name], ROWS[name]
    full, windowed = model.kv_bytes_per_token("bf16"), model.kv_bytes_per_token("bf16", windowed=True)
    expected = float(row["kv_bytes_per_token_bf16_full_layers"]), float(row["kv_windowed_bytes_per_token"] or 0)
    if name == "allenai/Olmo-3-32B":
        assert full + windowed == sum(expected)
    else:
        assert (full, windowed) == expected
    state = float(row["state_bytes_per_seq"] or 0)
    assert model.state_bytes_per_sequence == pytest.approx(state, rel=0.04 if "K3" in name else 1e-9)


def measured():
    return [name for name, row in ROWS.items() if row["measured_vllm_weight_gib_tp1"]]


def loaded_gib(model):
    """Return what vLLM holds after loading: weights, tower, rotary tables, copies for absorbed latent attention."""
    extra = model.vision_params + model.position_elements + model.absorbed_params
    return (model.weight_bytes(mxfp4_multiple=256) + 2 * extra) / GIB


@pytest.mark.parametrize("name", measured())
def test_weights_that_vllm_logged(models, name):
    """Text models in bf16 within 1 % from the counts alone, and within 0.6 % with the rotary tables.

    The configs of gemma-3-4b and 12b are class defaults with a longer rotary table than the checkpoints have.
    """
    model, logged = models[name], float(ROWS[name]["measured_vllm_weight_gib_tp1"])
    if not model.vision_params and not model.checkpoint.experts:
        assert model.weight_bytes() / GIB == pytest.approx(logged, rel=0.01)
        assert loaded_gib(model) == pytest.approx(logged, rel=0.006)
    else:
        assert loaded_gib(model) == pytest.approx(logged, rel=0.016)


def test_weights_that_vllm_logged_on_average(models):
    text = [name for name in measured() if not models[name].vision_params and not models[name].checkpoint.experts]
    errors = [abs(loaded_gib(models[name]) / float(ROWS[name]["measured_vllm_weight_gib_tp1"]) - 1) for name in text]
    assert len(errors) == 18
    assert sum(errors) / len(errors) < 0.002


TOWERS = {  # totals of the checkpoints on Hugging Face, in 10^9
    "meta-llama/Llama-3.2-11B-Vision-Instruct": 10.67,
    "google/gemma-3-4b-it": 4.30,
    "google/gemma-3-27b-it": 27.43,
    "Qwen/Qwen2.5-VL-7B-Instruct": 8.29,
    "mistralai/Mistral-Small-3.1-24B-Instruct-2503": 24.01,
}


@pytest.mark.parametrize("name", list(TOWERS))
def test_vision_towers(models, name):
    whole = models[name].params + models[name].vision_params
    assert whole / 1e9 == pytest.approx(TOWERS[name], abs=0.006)
