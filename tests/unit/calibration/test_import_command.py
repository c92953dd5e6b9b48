"""``python -m calibration import``: what it prints, where it writes, and how it ends."""

import csv
import io
import json

import pytest

from calibration.__main__ import main

RUN = {
    "num_prompts": 8,
    "completed": 8,
    "request_throughput": 1.0,
    "output_throughput": 16.0,
    "duration": 8.0,
    "mean_ttft_ms": 20.5,
    "model_id": "=cmd()",
    "max_concurrency": 4,
    "total_output_tokens": 128,
    "ttfts": [0.02] * 8,
    "output_lens": [16] * 8,
    "itls": [[0.01] * 15] * 8,
}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(RUN))
    return str(path)


def test_table_names_the_flags_and_their_evidence(file, capsys):
    assert main(["import", file]) == 0
    shown = capsys.readouterr().out
    assert "few_requests" in shown
    assert "run.json: warning: few_requests: 8 requests are fewer than 5 x 4 in flight" in shown


def test_json_is_exact_and_has_the_arrays(file, capsys):
    assert main(["import", file, "--format", "json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert (run["ttft_mean_s"], run["output_len"], run["gpu"]) == (0.0205, 16, None)
    assert run["requests"]["gaps_s"] == [[0.01] * 15] * 8
    assert "few_requests" in {flag["check"] for flag in run["flags"]}


def test_csv_is_one_row_a_run_and_no_formula(file, capsys):
    assert main(["import", file, file, "--format", "csv"]) == 0
    first, second = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert first == second
    assert (first["model"], first["load_value"], first["ttft_mean_s"]) == ("'=cmd()", "4.0", "0.0205")


def test_a_file_that_cannot_be_read_does_not_keep_the_others(file, tmp_path, capsys):
    assert main(["import", str(tmp_path / "missing"), file, "--format", "json"]) == 2
    out, err = capsys.readouterr()
    assert len(json.loads(out)["runs"]) == 1
    assert err.startswith("error: ")
    assert err.count("\n") == 1


def test_output_file_appears_whole_or_not_at_all(file, tmp_path, capsys):
    target = tmp_path / "rows.csv"
    assert main(["import", file, "--format", "csv", "-o", str(target)]) == 0
    assert target.read_text().startswith("file,format,")
    assert main(["import", file, "-o", str(tmp_path / "no" / "rows.csv")]) == 2
    assert "cannot write" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.csv", "run.json"]


def test_wrong_usage_is_one_line(capsys):
    with pytest.raises(SystemExit) as end:
        main(["import"])
    assert end.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
