"""Command lines of engines: what becomes of every flag, and that none is taken without a word."""

import json
import re
from pathlib import Path

import pytest
from conftest import ROOT
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from overridden import overridden
from pydantic import BaseModel

from sim.errors import ConfigError
from sim.experiment import Experiment, experiment_of
from sim.profiles.command_line import fields_of, ignored
from sim.profiles.flags import spelling
from sim.profiles.folders import names
from sim.profiles.library import load_engine, load_flags
from sim.report.flags import flags_page
from sim.simulate import ready_pools, simulate
from sim.study.laboratory import altered
from sim.study.point import Point
from sim.yamlfile import parse_yaml

TABLES = {name: load_flags(name) for name in names("flags")}
EVERY = [(name, flag) for name, table in TABLES.items() for flag in table.modelled]
TEXT = """
model: meta-llama/Llama-3.1-8B-Instruct
deployment: {gpu: H100-SXM-80GB}
engine: {kind: vllm}
workload:
  arrivals: {kind: closed_loop, concurrency: 4}
  lengths: {kind: fixed, input_tokens: 300, output_tokens: 20}
  num_requests: 8
"""


def experiment(*overrides):
    return overridden(TEXT, *overrides)


def flagged(flags, *overrides):
    return experiment(*overrides, f"engine.flags={json.dumps(flags)}")


def test_the_page_is_what_the_command_prints():
    assert (ROOT / "docs" / "engine_flags.md").read_text() == flags_page(TABLES.values()) + "\n"


def test_every_engine_with_a_command_line_has_a_table():
    assert set(TABLES) == {"vllm", "sglang", "tensorrt-llm", "llama-cpp", "tgi", "ollama"}
    assert {load_engine(name).name for name in TABLES} == set(TABLES)
    sizes = {name: len(table.names) for name, table in TABLES.items()}
    assert sizes["vllm"] > 300
    assert sizes["sglang"] > 500
    assert sizes["llama-cpp"] > 300


@pytest.mark.parametrize(("engine", "flag"), EVERY, ids=lambda value: getattr(value, "names", (value,))[0])
def test_what_is_modelled_is_a_field_of_the_experiment(engine, flag):
    places = [Experiment]
    for step in flag.field.split("."):
        fields = [place.model_fields[step] for place in places if step in place.model_fields]
        assert fields, f"{flag.field} of {engine} has no {step}"
        places = [part for field in fields for part in _models(field.annotation)]


def _models(annotation):
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in getattr(annotation, "__args__", ()):
        yield from _models(part)


def words(name, value):
    """A flag and its value, as their engine takes them."""
    return [name, value] if name.startswith("-") else [f"{name}={value}"]


@pytest.mark.parametrize(("engine", "flag"), EVERY, ids=lambda value: getattr(value, "names", (value,))[0])
def test_every_modelled_flag_gives_an_experiment_or_says_what_to_write(engine, flag):
    kind = f"engine.kind={engine}"
    gpu = "deployment.gpu=B200-SXM-180GB"
    name = flag.names[0]
    if flag.write:
        with pytest.raises(ConfigError, match=f"{name}: write "):
            flagged(words(name, "7"), kind)
    elif flag.on is not None:
        flagged([name] if name.startswith("-") else words(name, "1"), kind, gpu)
    elif flag.values is not None:
        for text in flag.values:
            flagged([*words(name, text), *(words(flag.beside, text) if flag.beside else [])], kind, gpu)
    elif flag.field == "model":
        flagged([name, "meta-llama/Llama-3.1-8B-Instruct"], kind)
    else:
        value = "0.5" if "fraction" in name or "utilization" in name or name in ("--watermark",) else "2"
        flagged(words(name, value), kind, gpu)


@pytest.mark.parametrize("engine", TABLES)
def test_other_flags_change_nothing_or_are_refused_with_their_reason(engine):
    table = TABLES[engine]
    for why, flags in table.irrelevant.items():
        for flag in flags:
            assert fields_of(words(flag, "1"), table) == {}
            assert ignored(words(flag, "1"), engine, Path()) == {why: [flag]}
    for why, flags in table.refused.items():
        for flag in flags:
            with pytest.raises(ValueError, match=f"^{flag} is refused: ") as caught:
                fields_of(words(flag, "7"), table)
            assert why in str(caught.value)


@pytest.mark.parametrize("engine", TABLES)
def test_no_flag_outside_of_the_tables_is_taken(engine):
    table = TABLES[engine]
    known = {spelling(name) for name in table.names}
    word = st.from_regex(r"--[a-z][a-z0-9_.-]{0,30}", fullmatch=True)
    flags = [name for name in table.names if name.startswith("--")] or ["--serve"]
    near = st.sampled_from(flags).flatmap(lambda name: st.sampled_from((name + "s", name[:-1], name + "-x")))

    @settings(max_examples=40, deadline=None, derandomize=True)
    @given(st.one_of(word, near), st.sampled_from(((), ("1",), ("a", "b"))))
    def refused(flag, values):
        plain = spelling(flag)
        assume(plain not in known and plain.replace("--no-", "--", 1) not in known)
        assume(plain.partition(".")[0] not in known and plain not in ("-", "--"))
        with pytest.raises(ValueError, match="has no "):
            fields_of([flag, *values], table)

    refused()


def test_a_command_line_as_people_paste_it():
    line = (
        "vllm serve meta-llama/Llama-3.1-8B-Instruct --tensor-parallel-size 2 --max_num_seqs=64 --port 8000 -q fp8"
        " --no-enable-prefix-caching --max-model-len 16k --kv-cache-dtype auto --served-model-name llama"
    )
    found = flagged(line)
    assert found.deployment.parallelism.tp == 2
    assert (found.deployment.quantization.weights, found.deployment.quantization.kv_cache) == ("fp8", None)
    assert (found.engine.max_model_len, found.engine.prefix_caching) == (16_000, False)
    assert (found.engine.scheduler.kind, found.engine.scheduler.max_num_seqs) == ("chunked_prefill", 64)
    plain = experiment(
        "deployment.parallelism.tp=2",
        "deployment.quantization.weights=fp8",
        "engine={max_model_len: 16000, prefix_caching: false, scheduler: {kind: chunked_prefill, max_num_seqs: 64}}",
    )
    one, other = simulate(found), simulate(plain)
    assert one.requests.last_token_s.tolist() == other.requests.last_token_s.tolist()
    said = next(text for text in one.context.warnings if "--port" in text)
    assert said.startswith("engine.flags: --port, --served-model-name without effect: names, files and the API")


def test_a_flag_that_was_dropped_and_changed_nothing_is_no_error():
    assert flagged("--disable-log-requests --max-num-seqs 64").engine.scheduler.max_num_seqs == 64


def test_flags_of_a_pool_are_its_own():
    found = experiment(
        "engine.flags=--max-num-seqs 8",
        'pools=[{name: a, engine: {flags: "--max-num-seqs 16 -tp 2"}}, {name: b, gpu: H200-SXM-141GB}]',
    )
    first, second = (pool.experiment for pool in simulate(found).pools)
    assert (first.engine.scheduler.max_num_seqs, first.deployment.parallelism.tp) == (16, 2)
    assert (second.engine.scheduler.max_num_seqs, second.deployment.parallelism.tp) == (8, 1)


@pytest.mark.parametrize(
    ("flags", "overrides", "message"),
    [
        ("--max-num-seq 8", (), "vllm serve 0.33.0 has no --max-num-seq (did you mean '--max-num-seqs' or"),
        ("--mem-fraction-static 1", (), "has no --mem-fraction-static: it is sglang's, here --gpu-memory-utilization"),
        ("--page-size 1", (), "has no --page-size: it is sglang's, here --block-size"),
        ("--gpu-memory-utilization 1", ("engine.kind=sglang",), "it is vllm's, here --mem-fraction-static"),
        ("--enable-lora", (), "--enable-lora is refused: adapters (LoRA) are not modelled"),
        ("--max-num-seqs", (), "--max-num-seqs: a value is missing"),
        ("--kv-cache-dtype fp3", (), "--kv-cache-dtype: 'fp3' is not modelled; known are auto, bfloat16, "),
        ("--max-model-len 8k", ("engine.max_model_len=9",), "says engine.max_model_len 8000, where 9 is"),
        ("other/model", (), "says model other/model, where meta-llama/Llama-3.1-8B-Instruct is written"),
        ("--no-kv-unified x", ("engine.kind=llama-cpp",), "llama-server 00dc805 has no MODEL"),
        ("--anything", ("engine.kind=deepspeed",), "deepspeed has no table of flags: write fields; llama-cpp, ollama"),
        ("--enable_chunked_prefill=false", ("engine.kind=nim",), "--enable_chunked_prefill: it cannot be"),
    ],
)
def test_what_is_wrong_with_a_flag_is_said_at_its_line(flags, overrides, message):
    with pytest.raises(ConfigError) as caught:
        flagged(flags, *overrides)
    assert message in str(caught.value)
    assert "engine.flags" in str(caught.value)


def test_a_wrong_value_is_an_error_of_the_field_at_the_line_of_the_flag():
    text = TEXT.replace("engine: {kind: vllm}", "engine:\n  flags: --max-num-seqs many")
    with pytest.raises(ConfigError, match=r"^flags\.yaml:5: engine\.scheduler\.max_num_seqs: expected a whole number"):
        experiment_of(parse_yaml(text, "flags.yaml"))


def test_a_line_goes_on_after_a_backslash_and_may_begin_with_python():
    found = flagged("python3 -m vllm.entrypoints.openai.api_server \\\n  --max-num-seqs 64 \\\n  --port 80 \\\n")
    assert found.engine.scheduler.max_num_seqs == 64
    assert found.engine.flags == ("--port=80",)


@pytest.mark.parametrize(
    ("flags", "field", "value"),
    [
        ("-q fp8 --dtype bfloat16", "deployment.quantization.weights", "fp8"),
        ("--dtype bfloat16 -q fp8", "deployment.quantization.weights", "fp8"),
        ("--enforce-eager --max-cudagraph-capture-size 64", "engine.max_captured_batch", 0),
        ("--kv-cache-dtype fp8 --kv-cache-dtype auto", "deployment.quantization.kv_cache", None),
        ("--max-num-seqs 8 --max-num-seqs 9", "engine.scheduler.max_num_seqs", 9),
        ("--enable-prefix-caching=False", "engine.prefix_caching", False),
        ("--enable-prefix-caching=True", "engine.prefix_caching", True),
        ("--max-model-len 25.6k", "engine.max_model_len", 25_600),
        ("--max-model-len 0.1m", "engine.max_model_len", 100_000),
    ],
)
def test_of_several_flags_for_a_field_the_one_counts_that_the_engine_obeys(flags, field, value):
    found = fields_of(flags, TABLES["vllm"])
    assert found.get(field) == value


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--enable-prefix-caching=maybe", "--enable-prefix-caching takes no value 'maybe'"),
        ("--no-enable-prefix-caching=false", "--no-enable-prefix-caching takes no value 'false'"),
        ("VLLM_USE_V1=0 vllm serve", "VLLM_USE_V1=0: this variable of the environment is not modelled"),
    ],
)
def test_words_that_an_engine_would_not_take_are_refused(flags, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        fields_of(flags, TABLES["vllm"])


@pytest.mark.parametrize(
    ("engine", "flags", "fields"),
    [
        ("vllm", "-O3 -qfp8", {"deployment.quantization.weights": "fp8"}),
        ("vllm", "-tp=2 --max_num_seqs=8", {"deployment.parallelism.tp": 2, "engine.scheduler.max_num_seqs": 8}),
        ("vllm", "--compilation-config.max_cudagraph_capture_size 256", {"engine.max_captured_batch": 256}),
        ("vllm", "-cc.max_cudagraph_capture_size=256 -O2", {"engine.max_captured_batch": 256}),
        ("vllm", """-cc '{"cudagraph_mode": "NONE", "mode": 3}'""", {"engine.max_captured_batch": 0}),
        ("vllm", "--cudagraph-capture-sizes 1 2 4 8", {"engine.captured_batches": [1, 2, 4, 8]}),
        ("vllm", """-cc '{"cudagraph_capture_sizes": [1, 8]}'""", {"engine.captured_batches": [1, 8]}),
        ("vllm", "--cuda-graph-sizes 512", {"engine.max_captured_batch": 512}),
        ("vllm", "--cuda-graph-sizes 1 2 128", {"engine.captured_batches": [1, 2, 128]}),
        ("vllm", "--cuda-graph-sizes 512 --cuda-graph-sizes 1 2", {"engine.captured_batches": [1, 2]}),
        ("vllm", "--cuda-graph-sizes 512 --enforce-eager", {"engine.max_captured_batch": 0}),
        ("vllm", "--cudagraph-capture-sizes 8", {"engine.captured_batches": [8]}),
        ("vllm", "--max-num-seqs None --stream-interval 1", {}),
        ("vllm", "--no-enable-eplb --cpu-offload-gb 0 --enable-lora=False --no-enable-lora -dcp 1 --runner auto", {}),
        ("vllm", "--swap-space 16 --num-scheduler-steps 1 --preemption-mode recompute", {}),
        ("vllm", "--guided-decoding-backend guidance", {"engine.structured_output.backend": "llguidance"}),
        ("vllm", "--max-num-seqs 8 --max-num-seqs None", {}),
        ("sglang", "--deepep-mode auto", {}),
        ("sglang", "--deepep-mode low_latency --moe-a2a-backend none", {}),
        ("sglang", "--deepep-mode low_latency --moe-a2a-backend deepep",
         {"engine.all_to_all": {"library": "deepep", "mode": "low_latency"}}),
        ("sglang", "--moe-a2a-backend deepep", {"engine.all_to_all": {"library": "deepep"}}),
        ("sglang", "--chunked-prefill-size 0", {"engine.scheduler.chunked_prefill": False}),
        ("sglang", "--chunked-prefill-size -1", {"engine.scheduler.chunked_prefill": False}),
        ("sglang", "--chunked-prefill-size=-1 --chunked-prefill-size 512",
         {"engine.scheduler.max_num_batched_tokens": 512}),
        ("sglang", "--cuda-graph-bs 1 2 24 --disaggregation-mode null", {"engine.captured_batches": [1, 2, 24]}),
        ("llama-cpp", "-ngl 99 -np 2", {"engine.scheduler.max_num_seqs": 2}),
        ("llama-cpp", "-no-kvu", {"engine.scheduler.unified": False}),
        ("tgi", "--sharded true --num-shard 2 --speculate 0", {"deployment.parallelism.tp": 2}),
        ("tgi", "--num-shard 2 --sharded true", {"deployment.parallelism.tp": 2}),
        ("tgi", "--num-shard 2 --sharded false", {"deployment.parallelism.tp": 2}),
        ("tgi", "--sharded false", {"deployment.parallelism.tp": 1}),
        ("tgi", "--quantize fp8 --dtype bfloat16", {"deployment.quantization.weights": "fp8"}),
        ("tgi", "--dtype bfloat16 --quantize fp8", {"deployment.quantization.weights": "fp8"}),
        ("tgi", "NUM_SHARD=2 text-generation-launcher -p80 --cuda-graphs 1,2",
         {"deployment.parallelism.tp": 2, "engine.captured_batches": [1, 2]}),
        ("tgi", "PREFIX_CACHING=0 text-generation-launcher --cuda-graphs 0",
         {"engine.prefix_caching": False, "engine.max_captured_batch": 0}),
        ("ollama", "OLLAMA_NUM_PARALLEL=4 OLLAMA_HOST=0.0.0.0 ollama serve", {"engine.scheduler.max_num_seqs": 4}),
        ("ollama", "OLLAMA_KV_CACHE_TYPE=q8_0", {"deployment.quantization.kv_cache": "int8"}),
        ("tensorrt-llm", "trtllm-serve m --backend pytorch --kv_cache_dtype fp8", {
            "model": "m", "deployment.quantization.kv_cache": "fp8"}),
    ],
)  # fmt: skip
def test_flags_as_their_engines_take_them(engine, flags, fields):
    assert fields_of(flags, TABLES[engine]) == fields


@pytest.mark.parametrize(
    ("engine", "flags", "message"),
    [
        ("vllm", "--cpu-offload-gb 4", "--cpu-offload-gb is refused: weights outside of the accelerators"),
        ("vllm", "--enable-lora=true", "--enable-lora is refused: adapters"),
        ("vllm", "--enable-eplb", "--enable-eplb: write moe.placement.kind, eplb, with the load"),
        ("vllm", "-tp2", "vllm serve 0.33.0 has no -tp2"),
        ("vllm", "--max-model-len auto", "--max-model-len auto is refused: lengths are not sought: write the one that"),
        ("vllm", "--max-model-len -1", "--max-model-len -1 is refused: lengths are not sought: write the one that"),
        ("vllm", "--dtype.x 3", "vllm serve 0.33.0 has no --dtype.x (did you mean '--dtype'"),
        ("vllm", "--max-num-seqs.x 3", "vllm serve 0.33.0 has no --max-num-seqs.x (did you mean '--max-num-seqs'"),
        ("vllm", "--no-dtype", "--no-dtype: it cannot be turned off"),
        ("vllm", "--speculative-config.method ngram", "--speculative-config.method: write engine.speculative, with"),
        ("vllm", "-O0", "-O: '0' is not modelled; known are 2, 3"),
        ("vllm", "-cc '{mode: 3}'", "-cc: {mode: 3} is not JSON"),
        ("vllm", """-cc '{"backend": "eager"}'""", "-cc is refused: kernels run as captured and compiled graphs"),
        ("ollama", "OLLAMA_NUM_PARALEL=4", "OLLAMA_NUM_PARALEL=4: this variable of the environment is not modelled"),
        ("llama-cpp", "-nocb", "-nocb is refused: on by default, and not modelled without"),
        ("llama-cpp", "-nkvo", "-nkvo is refused: on by default, and not modelled without"),
        ("llama-cpp", "-nr", "-nr is refused: on by default, and not modelled without"),
        ("llama-cpp", "-np4", "llama-server 00dc805 has no -np4"),
        ("llama-cpp", "-t8", "llama-server 00dc805 has no -t8"),
        ("llama-cpp", "-ngl 20", "-ngl: '20' is not modelled; known are all, auto, -1, 99"),
    ],
)
def test_flags_that_their_engines_or_the_simulator_do_not_take(engine, flags, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        fields_of(flags, TABLES[engine])


CONTINUOUS = "engine.scheduler={kind: continuous, preemption_mode: %s}"


@pytest.mark.parametrize(
    ("engine", "flags", "override", "said"),
    [
        ("vllm", "--preemption-mode recompute", CONTINUOUS % "swap", "engine.scheduler.preemption_mode swap"),
        ("vllm", "--all2all-backend allgather_reducescatter", "engine.all_to_all={library: deepep}",
         "engine.all_to_all {'library': 'deepep'}"),
        ("vllm", "-O3", "engine.max_captured_batch=0", "engine.max_captured_batch 0"),
        ("vllm", "-cc.cudagraph_mode FULL_AND_PIECEWISE", "engine.max_captured_batch=0", "engine.max_captured_batch 0"),
        ("vllm", "--enforce-eager", "engine.max_captured_batch=64", "64"),
        ("vllm", "--no-enable-eplb", "moe={placement: {kind: eplb}}", "moe.placement.kind eplb"),
        ("tgi", "--speculate 0", "engine.speculative={kind: ngram, num_speculative_tokens: 3, acceptance: 0.5}",
         "engine.speculative {'kind'"),
        ("tgi", "--sharded false", "deployment.parallelism.tp=2", "2"),
        ("sglang", "--moe-a2a-backend none", "engine.all_to_all={library: deepep}", "engine.all_to_all {'library'"),
        ("sglang", "--deepep-mode low_latency", "engine.all_to_all={library: deepep, mode: auto}",
         "engine.all_to_all {'library'"),
    ],
)  # fmt: skip
def test_a_flag_that_states_another_value_than_the_field_is_refused(engine, flags, override, said):
    with pytest.raises(ConfigError, match=f"where {re.escape(said)}.* is written: write one of them"):
        flagged(flags, f"engine.kind={engine}", override)


@pytest.mark.parametrize(
    ("flags", "override"),
    [
        ("--kv-cache-dtype auto", "deployment.quantization.kv_cache=fp8"),
        ("--dtype auto", "deployment.quantization.weights=fp8"),
        ("--preemption-mode recompute", CONTINUOUS % "recompute"),
        ("--all2all-backend allgather_reducescatter --all2all-backend deepep_low_latency",
         "engine.all_to_all={library: deepep, mode: low_latency}"),
        ("-O3", "engine.max_captured_batch=64"),
    ],
)  # fmt: skip
def test_a_flag_that_leaves_the_choice_to_the_engine_contradicts_no_field(flags, override):
    assert flagged(flags, override).model_dump(exclude={"engine": {"flags"}}) == experiment(override).model_dump(
        exclude={"engine": {"flags"}}
    )


def test_a_pool_may_write_other_fields_than_flags_say():
    pools = "pools=[{name: a, parallelism: {tp: 4}, engine: {scheduler: {kind: chunked_prefill, max_num_seqs: 4}}}]"
    (pool,) = ready_pools(experiment("engine.flags=-tp 2 --max-num-seqs 8 --port 80", pools))
    assert (pool.experiment.deployment.parallelism.tp, pool.setup.flags.scheduler.max_num_seqs) == (4, 4)


NEW, OLD = ("chunked_prefill", 8), ("continuous", 8)


@pytest.mark.parametrize(
    ("overrides", "pools", "kinds"),
    [
        ((), '[{name: a}, {name: b, engine: {version: "0.6.6"}}]', [NEW, OLD]),
        (('engine.version="0.6.6"',), '[{name: a}, {name: b, engine: {version: "0.10.0"}}]', [OLD, NEW]),
        ((), '[{name: a, engine: {version: "0.6.6", flags: -tp 2}}]', [OLD]),
        ((), '[{name: a, engine: {version: "0.6.6", flags: --max-num-seqs 4}}]', [("continuous", 4)]),
        ((), '[{name: a, engine: {version: "0.6.6", scheduler: {kind: chunked_prefill, max_num_seqs: 4}}}]',
         [("chunked_prefill", 4)]),
        (("engine.scheduler={kind: continuous}",), '[{name: a}, {name: b, engine: {version: "0.6.6"}}]', [OLD, OLD]),
    ],
)  # fmt: skip
def test_what_flags_say_of_the_scheduler_is_said_of_that_of_each_pools_release(overrides, pools, kinds):
    found = ready_pools(experiment("engine.flags=--max-num-seqs 8", f"pools={pools}", *overrides))
    schedulers = [pool.setup.flags.scheduler for pool in found]
    assert [(scheduler.kind, scheduler.max_num_seqs) for scheduler in schedulers] == kinds


def test_flags_of_a_pool_are_of_the_scheduler_that_it_inherits():
    (pool,) = ready_pools(
        experiment("engine.scheduler={kind: continuous}", "pools=[{name: a, engine: {flags: --max-num-seqs 8}}]")
    )
    scheduler = pool.setup.flags.scheduler
    assert (scheduler.kind, scheduler.max_num_seqs) == OLD


def test_a_release_that_nobody_knows_is_an_error_of_its_pool():
    with pytest.raises(ConfigError, match=r"pools\.0\.engine: vllm has no version 'zz'"):
        experiment("engine.flags=--max-num-seqs 8", "pools=[{name: a, engine: {version: zz}}]")


@pytest.mark.parametrize("beside", ["", " --moe-a2a-backend none"])
def test_a_flag_that_needs_another_says_so(beside):
    run = simulate(flagged(f"--deepep-mode low_latency --port 80{beside}", "engine.kind=sglang"))
    said = [text for text in run.context.warnings if text.startswith("engine.flags: --deepep-mode")]
    assert said == ["engine.flags: --deepep-mode without effect: without --moe-a2a-backend deepep it has none"]
    assert ignored("--deepep-mode auto --moe-a2a-backend deepep", "sglang", Path()) == {}


def test_flags_of_one_engine_are_not_taken_for_the_pool_of_another():
    with pytest.raises(ConfigError, match=r"pools\.0\.engine\.kind: engine.flags are those of vllm: give the pool"):
        experiment("engine.flags=--max-num-seqs 8", "pools=[{name: a, engine: {kind: sglang}}]")


@pytest.mark.parametrize(
    ("settings", "seqs", "prefix_caching"),
    [
        ({"engine.scheduler.max_num_seqs": 4}, 4, False),
        ({"engine.flags": "--max-num-seqs 16"}, 16, None),
        ({"engine.kind": "sglang", "engine.flags": "--max-running-requests 3"}, 3, None),
    ],
)
def test_a_sweep_changes_what_flags_say_and_the_flags(settings, seqs, prefix_caching):
    base = flagged("--max-num-seqs 8 --no-enable-prefix-caching")
    for found in (Point(0, settings, 0).experiment(base), altered(base, settings)):
        assert (found.engine.scheduler.max_num_seqs, found.engine.prefix_caching) == (seqs, prefix_caching)


@pytest.mark.parametrize("flags", ["-ctk q8_0", "-ctv q8_0", "-ctk q8_0 -ctv f16", "-ctv q8_0 -ctk f16"])
def test_keys_and_values_of_llama_cpp_have_one_type(flags):
    with pytest.raises(ValueError, match=r"^--cache-type-[kv]: --cache-type-[kv] has to say the same"):
        fields_of(flags, TABLES["llama-cpp"])
    both = fields_of("-ctk q8_0 -ctv q8_0", TABLES["llama-cpp"])
    assert both == {"deployment.quantization.kv_cache": "int8"}
