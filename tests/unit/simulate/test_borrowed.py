"""Options and constants that are another's, or of no use, are named."""

import pytest

from calibration.fitting.outcome import profile_yaml
from calibration.fitting.recipes import by_engine
from sim.errors import ConfigError, UserError
from sim.experiment import experiment_of, load_experiment
from sim.profiles.library import load_calibrated_engine
from sim.simulate import prepare, simulate
from sim.yamlfile import parse_yaml

RUN = """\
model: {model}
deployment: {{gpu: H100-SXM-80GB, parallelism: {parallelism}}}
engine: {{{engine}}}
workload:
  arrivals: {{kind: offline}}
  lengths: {{kind: fixed, input_tokens: 16, output_tokens: 2}}
  num_requests: 16
"""
DENSE, MIXTURE = "meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-30B-A3B"


def text(engine, model=DENSE, parallelism="{tp: 1}"):
    return RUN.format(model=model, parallelism=parallelism, engine=engine)


def warnings(engine, *rest):
    return "\n".join(simulate(experiment_of(parse_yaml(text(engine, *rest), "x.yaml"))).context.warnings)


def test_constants_of_another_engine_are_named():
    other = "engine.calibration: llama-cpp was fitted to runs of llama-cpp, and engine.kind is vllm"
    assert other in warnings("kind: vllm, calibration: llama-cpp")
    for own in ("kind: vllm", "kind: vllm, calibration: vllm", "kind: nim", "kind: vllm, calibration: none"):
        assert "engine.calibration" not in warnings(own)


def test_a_fit_says_of_which_engine_it_is(tmp_path):
    entry = load_calibrated_engine("llama-cpp").entries[-1]
    (tmp_path / "mine.yaml").write_text(profile_yaml("mine", [entry], "test", "llama-cpp"))
    (tmp_path / "x.yaml").write_text(text("kind: vllm, calibration: mine.yaml"))
    found = simulate(load_experiment(tmp_path / "x.yaml")).context.warnings
    assert "engine.calibration: mine was fitted to runs of llama-cpp, and engine.kind is vllm" in found


@pytest.mark.parametrize(("ranks", "named"), [(8, False), (16, True)])
def test_a_library_that_was_not_timed_between_nodes_is_named(ranks, named):
    parallelism = f"{{tp: 1, dp: {ranks}, ep: {ranks}}}"
    line = "engine.all_to_all: over several nodes, deepep-vllm has the times of deepep"
    assert (line in warnings("all_to_all: {library: deepep-vllm}", MIXTURE, parallelism)) == named
    assert "several nodes" not in warnings("all_to_all: {library: deepep}", MIXTURE, parallelism)


def test_a_library_without_ranks_to_carry_tokens_between_is_named():
    line = "engine.all_to_all has no effect without attention data parallelism: deployment.parallelism.dp is 1"
    assert line in warnings("all_to_all: {library: deepep}", MIXTURE)


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ("all_to_all: {library: deepep-vllm}", "x.yaml:3: engine.all_to_all: meta-llama/Llama-3.1-8B-Instruct has no"),
        (
            "speculative: {kind: ngram, num_speculative_tokens: 2, acceptance: 0.5, draft_tensor_parallel_size: 1}",
            "engine.speculative.draft_tensor_parallel_size: is of no use with ngram: no model drafts",
        ),
    ],
)
def test_what_nothing_would_look_at_is_refused(engine, message):
    with pytest.raises(ConfigError) as problem:
        prepare(experiment_of(parse_yaml(text(engine), "x.yaml")))
    assert message in str(problem.value)


def test_recipes_of_an_unknown_engine():
    with pytest.raises(UserError, match=r"--engine vlm: no runs of it are fitted \(did you mean 'vllm'\?\)"):
        by_engine(["vlm"])
