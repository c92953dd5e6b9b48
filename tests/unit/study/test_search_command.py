import json

import pytest
from pyarrow import parquet
from small_search import POISSON, experiment_in

from sim.__main__ import main

CHEAPEST = """{kind: cheapest, gpus: [H100-SXM-80GB, L40S, T4], tp: [1], precisions: [bf16], max_replicas: 4,
  knobs: {engine.num_gpu_blocks_override: [null, 500]}}"""


@pytest.fixture
def search(tmp_path, monkeypatch):
    """Return a function that runs the command on a small search."""
    monkeypatch.setenv("SERVECAST_CACHE", str(tmp_path / "cache"))

    def run(asked, *options, **of_experiment):
        experiment_in(tmp_path, asked, **of_experiment)
        return main(["search", str(tmp_path / "exp.yaml"), *options])

    return run


def test_the_highest_load_is_what_is_asked_of_an_experiment_without_a_search(search, capsys):
    assert search("null", "--set", "search={kind: capacity, tolerance: 0.1}") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "small: the highest load within ttft_p90 <= 200 ms, tpot_p90 <= 12 ms"
    assert "requests/s by the model; 90 % interval" in lines[1]
    assert lines[2].startswith("  there: ttft_p90")
    assert "KV cache" in lines[2]
    assert "requests/s with 90% confidence" in lines[4]


def test_json_and_files_say_the_same(search, capsys, tmp_path):
    out = tmp_path / "out"
    assert search("{kind: capacity, tolerance: 0.1}", "--format", "json", "--out", str(out), "--quiet") == 0
    output, errors = capsys.readouterr()
    answer = json.loads(output)
    assert errors == ""
    assert json.loads((out / "result.json").read_text()) == answer
    rows = parquet.read_table(out / "points.parquet").to_pylist()
    assert [row["load"] for row in rows] == [step["load"] for step in answer["steps"]]


def test_the_table_has_every_accelerator_and_every_reason(search, capsys):
    assert search(CHEAPEST, arrivals=POISSON) == 0
    output = capsys.readouterr().out
    assert output.splitlines()[1].startswith("Take ")
    for gpu in ("H100-SXM-80GB", "L40S", "T4"):
        assert f"\n {gpu} " in output or f"\n  {gpu}: none keeps the SLO" in output, gpu
    assert "other deployments:" in output
    assert "leave nothing for the KV cache" in output


def test_a_narrow_terminal_has_a_column_for_each_accelerator(search, capsys, monkeypatch):
    monkeypatch.setattr("sim.report.search.room_of", lambda console: 80)
    assert search(CHEAPEST, "--quiet", arrivals=POISSON) == 0
    lines = capsys.readouterr().out.splitlines()
    top = next(place for place, line in enumerate(lines) if line.startswith(" accelerator "))
    rows = lines[top : next(place for place, line in enumerate(lines[top:], top) if not line.strip())]
    assert set(rows[0].split()[1:]) <= {"H100-SXM-80GB", "L40S", "T4"}
    assert max(map(len, rows)) <= 80
    assert any(line.startswith(" why ") for line in rows)


def test_what_nothing_keeps_is_infeasible(search, capsys):
    assert search(CHEAPEST, arrivals=POISSON, slo="{tpot_p90: 1 ms}") == 3
    output, errors = capsys.readouterr()
    assert output == ""
    assert "no deployment of 6 keeps the SLO with at most 4 replicas; closest is" in errors


def test_a_search_that_cannot_be_is_one_line(search, capsys):
    assert search("{kind: cheapest, gpus: [H1000]}") == 2
    assert capsys.readouterr().err.count("\n") == 1
