"""Whatever stands in a config, reading it gives a model or one line that names file and key."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sim.errors import ProfileError
from sim.profiles.huggingface import read
from sim.profiles.huggingface.families import readers

KEYS = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": 1000,
    "max_position_embeddings": 512,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "kv_lora_rank": 16,
    "q_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 8,
    "sliding_window": 64,
    "layer_types": ["full_attention"] * 4,
    "rope_scaling": {"rope_type": "yarn", "factor": 2.0},
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    "vision_config": {"hidden_size": 32},
}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(sorted(KEYS)), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "m.json"


def outcome_of(path):
    try:
        return read(path)
    except ProfileError as error:
        return str(error)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    kind=st.sampled_from(sorted(readers())),
    changes=st.dictionaries(st.sampled_from(sorted(KEYS)), VALUES, max_size=3),
    left_out=st.sets(st.sampled_from(sorted(KEYS)), max_size=3),
    nested=st.booleans(),
)
def test_a_model_or_one_line(path, kind, changes, left_out, nested):
    config = {"model_type": kind} | {key: value for key, value in KEYS.items() if key not in left_out} | changes
    path.write_text(json.dumps({"model_type": "any", "text_config": config} if nested else config))
    outcome = outcome_of(path)
    if isinstance(outcome, str):
        assert outcome.startswith(str(path))
        assert "\n" not in outcome
        assert len(outcome) < len(str(path)) + 400
    else:
        assert 0 < outcome.active_params <= outcome.params
