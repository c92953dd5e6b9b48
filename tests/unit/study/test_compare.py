"""Side by side: intervals by hand, the parts of an iteration, folders against experiments."""

import json

import numpy as np
import pytest

from sim.__main__ import main
from sim.experiment import load_experiment
from sim.study.compare import Difference, _student, compare, play_seeds
from sim.study.played import from_folder
from sim.study.sentences import explain
from sim.study.why import Anatomy

EXPERIMENT = """
model: meta-llama/Llama-3.1-8B-Instruct
deployment: {gpu: L40S}
engine: {kind: vllm, version: "0.19", max_model_len: 4096}
workload: {arrivals: {kind: poisson, rate: 6}, lengths: {kind: exponential, input_tokens: 400, output_tokens: 60}, num_requests: 120}
prices: {gpu_hour_usd: 1.0}
"""  # noqa: E501


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "small.yaml"
    file.write_text(EXPERIMENT)
    return file


def test_the_interval_is_students():
    # mean 2, standard error 1 / sqrt(3), t(2 degrees, 95 %) = 2.91999
    assert _student([1.0, 2.0, 3.0]) == pytest.approx((2 - 2.91999 / 3**0.5, 2 + 2.91999 / 3**0.5), abs=1e-4)


def test_a_difference_that_holds_0_is_not_sure():
    assert Difference("x", 10, 11, -1, 3).sure is False
    assert Difference("x", 10, 12, 1, 3).sure is True
    assert Difference("x", 10, 12, None, None).sure is None
    assert Difference("x", 10, 12, 1, 3).ratio == 1.2


def test_equal_deployments_differ_in_nothing(path):
    experiment = load_experiment(path)
    sides = [play_seeds(name, experiment, (1, 2)) for name in ("a", "b")]
    for found in compare(sides).differences[0].values():
        assert (found.base, found.low, found.high) == (found.other, 0, 0)


def test_twice_the_price_is_twice_the_cost_and_no_other_difference(path):
    one, two = (load_experiment(path, [f"prices.gpu_hour_usd={usd}"]) for usd in (1, 2))
    comparison = compare([play_seeds("one", one, (1, 2)), play_seeds("two", two, (1, 2))])
    differing = {key for key, found in comparison.differences[0].items() if found.base != found.other}
    assert differing == {"cost_usd_per_mtok_output"}
    assert comparison.sentences()[-1].startswith("a million output tokens costs 2.00 times as much at two as at one")


def test_operations_add_up_to_the_iteration(path):
    anatomy = play_seeds("a", load_experiment(path), (1,)).anatomy
    assert sum(anatomy.operations_s.values()) == pytest.approx(anatomy.iteration_s)
    assert {"matrix products", "attention"} <= anatomy.operations_s.keys()
    assert anatomy.kv_tokens > 0


def test_queue_and_prompt_add_up_to_the_first_token(path):
    side = play_seeds("a", load_experiment(path), (1,))
    both_s = side.anatomy.queue_s + side.anatomy.prompt_s
    assert both_s == pytest.approx(np.mean(side.runs[0].requests["ttft_s"]))


def test_sentences_name_the_operation_and_the_queue():
    one = Anatomy(0.010, {"matrix products": 0.008, "all-reduce": 0.002}, 0.5, 0.1, {"KV blocks": 0.4}, 10, 1000)
    two = Anatomy(0.020, {"matrix products": 0.008, "all-reduce": 0.012}, 2.5, 0.2, {"max_num_seqs": 0.9}, 20, 4000)
    differences = {
        "output_throughput": Difference("", 100, 50, -60, -40),
        "mean_ttft_ms": Difference("", 600, 2700, -100, 4300),
        "mean_tpot_ms": Difference("", 10, 20, 9, 11),
    }
    text = "\n".join(explain(("a", one), ("b", two), differences))
    assert "b gives 0.50 times the output tokens a second of a (100 -> 50)" in text
    assert "2.1 s later at b; within noise: 2 s more in the queue" in text
    assert "a has a queue for KV blocks 40% of its busy time, b has a queue for max_num_seqs 90%" in text
    assert "an iteration of b takes 2.00 times as long (10 ms -> 20 ms)" in text
    assert "instead of 10: 10 ms more in all-reduce; time per output token 10 -> 20 ms" in text
    assert "holds 4.00 times the tokens" in text


def test_variations_of_one_experiment(path, capsys):
    arguments = ["compare", str(path), "--vary", "two: deployment.replicas=2; seed=3", "--replications", "2"]
    assert main([*arguments, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["base"], [side["name"] for side in found["sides"]]) == ("small", ["small", "two"])
    assert found["differences"][0]["mean_tpot_ms"]["other"] < found["differences"][0]["mean_tpot_ms"]["base"]
    assert main(arguments) == 0
    assert "all-reduce" not in (shown := capsys.readouterr().out)
    assert "mean iteration [ms]" in shown


def test_folders_of_runs_are_compared_request_by_request(path, tmp_path, capsys):
    for name, gpu in (("slow", "L40S"), ("fast", "H100")):
        settings = ["--set", f"deployment.gpu={gpu}", "--quiet", "--out", str(tmp_path / name)]
        assert main(["run", str(path), *settings]) == 0
    name, played = from_folder(tmp_path / "slow")
    assert (name, played.seed) == ("slow", 1)
    capsys.readouterr()
    assert main(["compare", str(tmp_path / "slow"), str(tmp_path / "fast"), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    low, high = found["differences"][0]["mean_tpot_ms"]["interval"]
    difference = found["differences"][0]["mean_tpot_ms"]
    assert low < difference["other"] - difference["base"] < high < 0
    assert found["sides"][0]["operations_ms"]["attention"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{path}"], "at least two"),
        (["{path}", "{path}", "--replications", "0"], "at least 1 run"),
        (["{path}", "{folder}"], "no folder of `sim run --out`: it has no result.json"),
        (["{folder}", "--vary", "seed=2"], "not a folder"),
        (["{path}", "--vary", "seed=2, deployment.replicas=2"], "put ; between fields"),
    ],
)
def test_what_cannot_be_compared(path, tmp_path, arguments, message, capsys):
    folder = tmp_path / "empty"
    folder.mkdir()
    filled = [argument.format(path=path, folder=folder) for argument in arguments]
    assert main(["compare", *filled]) == 2
    assert message in capsys.readouterr().err
