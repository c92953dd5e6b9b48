"""Engines by name, end to end: the scheduler of each, its defaults, and what it does not serve."""

import pytest
from overridden import overridden

from sim.errors import ConfigError
from sim.policy import kinds_of
from sim.profiles.folders import names
from sim.profiles.library import load_engine, load_hardware, load_model
from sim.scheduler import Scheduler
from sim.simulate import prepare, simulate

ENGINES = names("engines")
TEXT = """
model: meta-llama/Llama-3.1-8B-Instruct
deployment: {gpu: H100-SXM-80GB}
engine: {kind: vllm, max_model_len: 4096}
workload:
  arrivals: {kind: closed_loop, concurrency: 20}
  lengths: {kind: fixed, input_tokens: 300, output_tokens: 20}
  num_requests: 40
"""


def experiment(*overrides):
    return overridden(TEXT, *overrides)


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_serves_by_its_name(name):
    assert simulate(experiment(f"engine.kind={name}")).summary.served.completed == 40


@pytest.mark.parametrize("name", ENGINES)
def test_every_version_has_a_scheduler_and_options_that_it_knows(name):
    for version in load_engine(name).versions:
        policy = kinds_of("sim.scheduler", Scheduler)[version.scheduler]
        policy(**version.scheduler_options)


@pytest.mark.parametrize(
    ("engine", "version", "option", "value"),
    [
        ("vllm", "0.6", "watermark", 0.01),  # vllm==0.6.6.post1: core/block_manager.py
        ("vllm", "0.18", "scheduler_reserve_full_isl", False),  # vllm==0.18.1, 0.19.1: config/scheduler.py
        ("vllm", "0.19", "scheduler_reserve_full_isl", True),
        ("vllm", "0.24", "watermark", 0),
        ("sglang", "latest", "max_prefill_tokens", 16384),  # sglang==0.5.10: server_args.py
        ("tensorrt-llm", "latest", "capacity_policy", "guaranteed_no_evict"),  # llm_args.py
        ("tensorrt-llm", "latest", "max_num_batched_tokens", 8192),
        ("tgi", "latest", "max_waiting_tokens", 20),  # launcher/src/main.rs
        ("tgi", "latest", "max_num_batched_tokens", 4096),
        ("llama-cpp", "latest", "unified", True),  # tools/server/README.md: --parallel -1
        ("llama-cpp", "latest", "max_num_seqs", 4),
        ("ollama", "latest", "max_num_queued_reqs", 512),  # envconfig/config.go: OLLAMA_MAX_QUEUE
        ("ray-serve", "0.19", "scheduler_reserve_full_isl", True),
        ("nim", "latest", "max_num_seqs", 2048),
    ],
)
def test_defaults_by_engine_and_version(engine, version, option, value):
    setup = prepare(experiment(f"engine.kind={engine}", f'engine.version="{version}"'))
    assert getattr(setup.flags.scheduler, option) == value


def test_affine_costs_take_the_bare_rules_of_an_iteration():
    setup = prepare(experiment('engine.version="0.19"', "cost_model={kind: affine, base_s: 0.01}"))
    assert setup.flags.scheduler.scheduler_reserve_full_isl is False


def test_an_option_that_is_written_wins():
    setup = prepare(experiment('engine.version="0.6"', "engine.scheduler={kind: continuous, watermark: 0.2}"))
    assert setup.flags.scheduler.watermark == 0.2
    setup = prepare(experiment('engine.version="0.6"', "engine.scheduler={kind: continuous, max_num_seqs: 7}"))
    assert (setup.flags.scheduler.watermark, setup.flags.scheduler.max_num_seqs) == (0.01, 7)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["engine.kind=tensorrt-llm", "deployment.gpu=MI300X"], "tensorrt-llm does not run on MI300X of AMD; "),
        (["engine.kind=ollama", "deployment.quantization.weights=fp8"], "ollama reads no fp8 weights on H100"),
        (["engine.kind=tensorrt-llm", "deployment.gpu=T4"], "tensorrt-llm does not run on T4 of NVIDIA; "),
        (
            ["engine.kind=nim", "deployment.gpu=A100-SXM-80GB", "deployment.quantization.weights=fp8"],
            "nim reads no fp8 weights on A100-SXM-80GB; ",
        ),
        (["engine.kind=tgi", "model=openai/gpt-oss-20b"], "tgi does not serve gpt_oss models; "),
        (["engine.kind=sglang", "model=ai21labs/Jamba-v0.1"], "sglang does not serve jamba models; "),
    ],
)
def test_what_an_engine_does_not_serve_is_refused_with_one_that_does(overrides, message):
    with pytest.raises(ConfigError, match=message) as caught:
        prepare(experiment(*overrides))
    assert "vllm" in str(caught.value)


def test_a_model_may_be_served_no_longer():
    vision = "model=meta-llama/Llama-3.2-11B-Vision-Instruct"
    with pytest.raises(ConfigError, match=r"vllm does not serve mllama_text_model models; deepspeed, nim, ollama, "):
        prepare(experiment(vision))
    assert prepare(experiment(vision, 'engine.version="0.10.2"')).version.since == "0.9"
    with pytest.raises(ConfigError, match="does not serve"):
        prepare(experiment(vision, 'engine.version="0.11.0"'))


@pytest.mark.parametrize("name", ENGINES)
def test_limits_name_what_there_is(name):
    serves = load_engine(name).serves
    architectures = {load_model(each).architecture for each in names("models")}
    assert {*serves.architectures, *serves.lacks, *serves.until} <= architectures
    assert set(serves.not_on) <= set(names("hardware"))
    assert set(serves.needs.values()) <= set(load_hardware("B200-SXM-180GB").peak_flops)


def test_contiguous_room_is_one_block_a_request():
    paged = prepare(experiment()).engine
    contiguous = prepare(experiment("engine.kv_layout=contiguous")).engine
    assert contiguous.block_size == 4096
    assert contiguous.num_blocks == paged.num_blocks * paged.block_size // 4096
    assert not contiguous.prefix_caching
    assert simulate(experiment("engine.kv_layout=contiguous")).summary.served.completed == 40


def test_time_outs_of_the_server_are_in_the_experiment():
    result = simulate(experiment("engine.request_timeout_s=1 ms"))
    assert result.summary.served.failed == 40
    assert set(result.requests.reasons) == {"not answered within 0.001 s"}

@pytest.mark.parametrize(("engine", "gpu"), [("vllm", "Ascend-910B3"), ("vllm", "Gaudi-3"), ("sglang", "Ascend-910B3")])
def test_an_engine_runs_where_its_plugins_run(engine, gpu):
    assert prepare(experiment(f"engine.kind={engine}", f"deployment.gpu={gpu}")).hardware.name == gpu
