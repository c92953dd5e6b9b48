"""Rows of prefill and decode on different accelerators as experiments."""

import pytest

from calibration.cases.not_modelled import NotModelledError
from calibration.cases.serving import ServingCase
from calibration.experiment.of_case import experiment_of_case, prepared_to_fit

INFERENCEX = "CI run; DISAGG prefill 8GPU(tp4 ep4 dpa=True x2) decode 40GPU(tp8 ep1 dpa=False x5); multinode"
ROW = {
    "case_id": "one",
    "engine": "dynamo-trt",
    "engine_version": "nvcr.io/nvidia/ai-dynamo/tensorrtllm-runtime:0.8.1.post1",
    "date": "2026-03-23",
    "gpu": "H200-SXM-141GB",
    "mode": "disagg",
    "model": "DeepSeek-R1-0528",
    "weight_dtype": "fp8",
    "input_len": "8192",
    "output_len": "1024",
    "len_distribution": "random uniform[0.8,1.0]xNominal",
    "load_type": "concurrency",
    "load_value": "9",
    "quality": "ok",
    "notes": INFERENCEX,
}


def prepared(**cells):
    return experiment_of_case(ServingCase(ROW | cells))


def reason(**cells):
    with pytest.raises(NotModelledError) as caught:
        prepared(**cells)
    return str(caught.value)


def sides(**cells):
    pools = prepared(**cells).experiment.pools
    return [(pool.role, pool.replicas, pool.parallelism.model_dump()) for pool in pools]


def test_inferencex_says_how_many_workers_of_how_many_ranks():
    assert sides() == [
        ("prefill", 2, {"tp": 1, "pp": 1, "dp": 4, "ep": 4}),
        ("decode", 5, {"tp": 8, "pp": 1, "dp": 1, "ep": 1}),
    ]
    assert reason(notes=INFERENCEX.replace("40GPU", "48GPU")) == "5 workers of tp 8 are not the stated 48 accelerators"


def test_others_say_it_in_json():
    both = {"tp_size": 1, "pp_size": 1, "attention_dp_size": 8, "moe_tp_size": 1, "moe_ep_size": 8}
    cells = {f"{role}_{name}": str(value) for role in ("prefill", "decode") for name, value in both.items()}
    counted = cells | {"prefill_num_workers": "5", "decode_num_workers": "3"}
    found = sides(notes="moe_tp=; " + str(counted).replace("'", '"'))
    assert [(role, workers, ranks["dp"], ranks["ep"]) for role, workers, ranks in found] == [
        ("prefill", 5, 8, 8),
        ("decode", 3, 8, 8),
    ]
    assert "workers there were is not stated" in reason(notes=str(cells).replace("'", '"'))


def test_the_version_is_the_engines_and_not_dynamos():
    engine = prepared().experiment.engine
    assert (engine.kind, engine.version) == ("tensorrt-llm", "1.2")
    engine = prepared(engine="dynamo-sglang", engine_version="lmsysorg/sglang:v0.5.8-cu130").experiment.engine
    assert (engine.kind, engine.version) == ("sglang", "0.5.8")


def test_two_kinds_of_accelerators():
    mixed = {"gpu": "A100/GH200 mix (see repo README)", "notes": "DISAGG 1 prefill + 4 decode"}
    found, pools = prepared_to_fit(ServingCase(ROW | mixed | {"model": "Qwen/Qwen2.5-3B-Instruct", "weight_dtype": ""}))
    assert [(pool.setup.hardware.name, pool.replicas) for pool in pools] == [("GH200-96GB", 1), ("A100-SXM-80GB", 4)]
    assert found.experiment.disaggregation.bytes_per_s == 125e6
    assert any("1 Gb/s" in line for line in found.assumed)


def test_what_is_not_stated_is_not_guessed():
    assert reason(notes="DISAGG") == "how many accelerators prefill and decode is not stated"
    assert "two processes" in reason(notes="DISAGG intra-node (2 processes)", gpu="GH200-96GB")
    assert reason(mode="disagg+spec") == "mode disagg+spec is not modelled"
