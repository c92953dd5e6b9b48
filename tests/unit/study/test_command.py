import json

import pytest
from small_study import write

from sim.__main__ import main


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """Return a function that runs the command on the small sweep, and yields its exit status."""
    monkeypatch.setenv("SERVECAST_CACHE", str(tmp_path / "cache"))
    path = write(tmp_path)
    return lambda *options: main(["sweep", str(path), "--out", str(tmp_path / "out"), "--workers", "1", *options])


def test_json_is_one_object_and_progress_is_on_stderr(sweep, capsys, tmp_path):
    assert sweep("--format", "json") == 0
    output, errors = capsys.readouterr()
    answer = json.loads(output)
    assert answer["table"] == str(tmp_path / "out" / "sweep.parquet")
    assert [row["status"] for row in answer["points"]] == ["ok"] * 6
    assert errors.startswith("6 of 6 points in ")


def test_the_table_names_axes_by_their_last_part_and_says_what_failed(sweep, capsys):
    assert sweep("--set", "sweep={workload.arrivals.rate: [2, 4], deployment.gpu: [L40S, H1000]}", "--quiet") == 0
    output, errors = capsys.readouterr()
    heading, _, *rows = [line for line in output.splitlines() if line.strip()]
    assert heading.split()[:4] == ["point", "rate", "gpu", "tok/s/GPU"]
    assert rows[0].split()[:3] == ["0", "2", "L40S"]
    assert rows[-3].startswith("  ! point 1 invalid: ")
    assert "point 3: deployment.gpu: no profile 'H1000'" in rows[-2]
    assert rows[-1].startswith("4 points, 2 with a result; all in ")
    assert errors == ""


def test_equal_runs_come_from_the_cache_and_resume_from_the_folder(sweep, capsys):
    def runs(*options):
        assert sweep(*options) == 0
        return capsys.readouterr().err.count("6 of 6 points")

    assert runs() == 1
    assert runs() == 0
    assert runs("--no-cache") == 1
    assert runs("--no-cache", "--resume") == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--address", "tcp://localhost:1"], "choose --backend dask or ray"),
        (["--set", "sweep=null"], "sweep: missing: write such as"),
        (["--workers", "0"], "argument --workers"),
    ],
)
def test_wrong_options_are_one_line(sweep, capsys, options, message):
    try:
        status = sweep(*options)
    except SystemExit as stop:
        status = stop.code
    assert status == 2
    output, errors = capsys.readouterr()
    assert message in errors
    assert (output, errors.count("\n")) == ("", 1)


def test_points_of_an_unfinished_sweep_are_not_thrown_away(sweep, tmp_path, capsys):
    point = tmp_path / "out" / "_points" / "000003.parquet"
    point.parent.mkdir(parents=True)
    point.write_bytes(b"as a kill leaves it")
    assert sweep() == 2
    assert "holds 1 points of an unfinished sweep: --resume" in capsys.readouterr().err
    assert point.exists()
    assert sweep("--resume") == 0
