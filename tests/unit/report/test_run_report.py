import json

import pytest

from sim.errors import ConfigError
from sim.experiment import experiment_of
from sim.report.run import defaults_text, show, write
from sim.simulate import simulate
from sim.yamlfile import parse_yaml

TEXT = """
model: Qwen/Qwen3-8B
deployment: {gpu: L40S}
engine: {max_model_len: 4096}
workload:
  arrivals: {kind: closed_loop, concurrency: 4}
  lengths: {kind: fixed, input_tokens: 100, output_tokens: 10}
  num_requests: 8
"""


@pytest.fixture(scope="module")
def result():
    return simulate(experiment_of(parse_yaml(TEXT, "experiment", ConfigError)))


def test_defaults_are_listed_by_section(result):
    lines = defaults_text(result).splitlines()
    assert lines[0] == "defaults used:"
    assert max(map(len, lines)) <= 110
    assert max(map(len, defaults_text(result, 60).splitlines())) <= 60
    assert "  deployment.parallelism: dp=1, ep=1, pp=1, tp=1" in lines
    text = " ".join(" ".join(lines).split())
    assert "engine: block_size=16, cache_generated=true" in text
    assert "max_num_batched_tokens=2048" in text
    assert "None" not in text
    assert "max_model_len" not in text  # written


def test_the_head_says_what_was_simulated(result, capsys):
    show(result, "table")
    head = " ".join(capsys.readouterr().out.split("latency")[0].split())
    assert "vllm latest (defaults of 0." in head
    assert "chunked_prefill (max_num_batched_tokens 2048, max_num_seqs 256" in head
    assert "None" not in head
    assert "8 requests, closed_loop arrivals (concurrency 4)" in head


def test_what_the_manifest_holds_runs_again_to_the_same_result(result, tmp_path):
    write(result, tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["defaults"]["engine.scheduler.max_num_batched_tokens"] == 2048
    assert "engine.scheduler.max_num_queued_reqs" not in manifest["defaults"]  # there is none
    again = simulate(experiment_of(parse_yaml(json.dumps(manifest["experiment"]), "manifest", ConfigError)))
    assert again.setup.flags == result.setup.flags
    assert again.summary.latency["e2el"].mean_s == result.summary.latency["e2el"].mean_s
