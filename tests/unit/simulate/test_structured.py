"""Structured output by its name: whose numbers hold, and what is refused."""

import json

import pytest
from overridden import overridden

from sim.errors import ConfigError
from sim.profiles.folders import names
from sim.profiles.library import load_engine, load_grammar
from sim.simulate import prepare, simulate

TEXT = """
model: Qwen/Qwen3-8B
deployment: {gpu: H100-SXM-80GB}
engine: {kind: vllm, max_model_len: 4096, structured_output: {}}
workload:
  arrivals: {kind: closed_loop, concurrency: 20}
  lengths: {kind: fixed, input_tokens: 300, output_tokens: 20}
  num_requests: 40
  structured_output: {schemas: 2}
"""


def experiment(*overrides):
    return overridden(TEXT, *overrides)


@pytest.mark.parametrize("name", names("grammars"))
def test_hard_schemas_take_longer_than_most(name):
    library = load_grammar(name)
    assert library.mask_s.mixed > library.mask_s.typical > 0
    assert library.compile_s.mixed > library.compile_s.typical > 0


def test_every_engine_names_libraries_that_there_are():
    for name in names("engines"):
        for version in load_engine(name).versions:
            chosen = version.structured_output
            for library in (chosen.backend, *chosen.backends) if chosen else ():
                assert load_grammar(library).name == library


@pytest.mark.parametrize(
    ("overrides", "mask_s", "compile_s", "overlapped"),
    [
        ((), 292e-6, 4.14, True),
        (("engine.structured_output.difficulty=typical",), 8e-6, 0.535, True),
        (("engine.structured_output.backend=guidance",), 47e-6, 1.611e-3, True),
        (("engine.structured_output={mask_s: 1 ms, compile_s: 1 s, overlapped: false}",), 1e-3, 1, False),
        (('engine.version="0.11.0"',), 292e-6, 4.14, False),
        (("engine.kind=llama-cpp",), 0.41 * 14.523e-3, 3.117e-3, False),
    ],
)
def test_what_is_written_wins_over_engine_and_library(overrides, mask_s, compile_s, overlapped):
    engine = prepare(experiment(*overrides)).engine
    masks = engine.cost.host.masks
    assert (masks.mask_s, masks.overlapped) == (pytest.approx(mask_s), overlapped)
    assert engine.compile_s == pytest.approx(compile_s)


def test_drafts_are_masked_by_one_thread():
    drafts = "engine.speculative={kind: ngram, num_speculative_tokens: 3, acceptance: 0.5}"
    assert [prepare(experiment(*more)).engine.cost.host.masks.threads for more in ((), (drafts,))] == [8, 1]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("engine.structured_output.backend=gbnf",), "vllm makes no masks with gbnf; known are xgrammar, llg"),
        (("engine.structured_output.backend=xgramar",), r"xgramar.*did you mean 'xgrammar'"),
        (('engine.version="0.2"',), "vllm from 0.2 on has no structured output"),
    ],
)
def test_what_an_engine_cannot_do_is_refused(overrides, message):
    with pytest.raises(ConfigError, match=message):
        prepare(experiment(*overrides))


def test_masks_that_are_not_overlapped_take_the_time_that_they_take():
    free = simulate(experiment("workload.structured_output=null"))
    slow = "engine.structured_output={mask_s: 1 ms, compile_s: 0, overlapped: false}"
    masked = simulate(experiment(slow))
    free_ms, masked_ms = (run.summary.as_dict()["mean_tpot_ms"] for run in (free, masked))
    assert masked_ms == pytest.approx(free_ms + 20, rel=0.1), "20 sequences, 1 ms each"
    assert masked.context.pools[0].time_use.by_resource["host"] > 0.5


def test_what_has_no_effect_is_said():
    nobody = simulate(experiment("workload.structured_output=null"))
    assert any("engine.structured_output has no effect" in each for each in nobody.context.warnings)
    affine = simulate(experiment("cost_model={kind: affine, base_s: 0.01}"))
    assert any("structured output takes no time" in each for each in affine.context.warnings)
    assert affine.summary.served.completed == 40


def test_a_trace_may_name_the_schema_of_each_request(tmp_path):
    lines = [
        {"arrival_s": 0.0, "input_tokens": 50, "output_tokens": 20, "schema": "invoice"},
        {"arrival_s": 9.0, "input_tokens": 50, "output_tokens": 20},
        {"arrival_s": 18.0, "input_tokens": 50, "output_tokens": 20, "schema": "invoice"},
        {"arrival_s": 27.0, "input_tokens": 50, "output_tokens": 20, "schema": "letter"},
    ]
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def run(structured):
        workload = f'workload={{"arrivals": {{"kind": "trace", "path": "{path}"}}}}'
        # Without fitted constants a client sees a token as soon as there is one.
        return simulate(overridden(TEXT, workload, f"engine.structured_output={structured}", "engine.calibration=none"))

    taken, ignored = run('{"compile_s": 2, "mask_s": 0.01, "overlapped": false}'), run("null")
    waits = taken.requests.ttft_s - ignored.requests.ttft_s
    assert waits == pytest.approx([2.01, 0, 0.01, 2.01], abs=5e-3), "the second invoice's grammar is there"
    assert any("schemas of the trace take no time" in warning for warning in ignored.context.warnings)
