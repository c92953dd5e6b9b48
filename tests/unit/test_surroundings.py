"""Disks that are full, folders that take nothing, odd locales, names and line ends: one line, or as if nothing was."""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_study import TEXT

from sim.__main__ import main

EXPERIMENT = TEXT.format(sweep="{seed: [1, 2]}", requests=30)
NOWHERE = "/proc/self/nowhere"
needs_proc = pytest.mark.skipif(not Path("/proc/self").exists(), reason="a file system that takes no files is needed")


@pytest.fixture
def experiment(tmp_path):
    path = tmp_path / "exp.yaml"
    path.write_text(EXPERIMENT, encoding="utf-8")
    return path


def sim(*arguments, without=(), before=None, **environment):
    known = {name: value for name, value in os.environ.items() if name not in without}
    return subprocess.run(
        [sys.executable, "-m", "sim", *map(str, arguments)],
        capture_output=True,
        env=known | environment,
        check=False,
        timeout=120,
        preexec_fn=before,
    )


def small_files():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))


@pytest.mark.parametrize("command", ["run", "sweep", "search"])
def test_a_disk_that_is_full_is_one_line_and_leaves_nothing(experiment, tmp_path, command):
    out = tmp_path / "out"
    options = ["--set", "slo.ttft_p90=1 s"] if command == "search" else []
    run = sim(
        command, experiment, "--out", out, *options, "--quiet", before=small_files, SERVECAST_CACHE=str(tmp_path / "c")
    )
    assert (run.returncode, run.stderr.count(b"\n")) == (2, 1), run.stderr
    assert b"cannot write: File too large" in run.stderr
    assert not [path for path in out.rglob("*") if path.is_file() and path.stat().st_size >= 1000]


@needs_proc
@pytest.mark.parametrize(
    "command",
    [
        ("run", "{experiment}", "--out", NOWHERE),
        ("sweep", "{experiment}", "--out", NOWHERE),
        ("search", "{experiment}", "--out", NOWHERE),
        ("trace", "convert", "experiments/traces/assistant_sessions.jsonl", "-o", f"{NOWHERE}/x.jsonl"),
        ("profiles", "add", "Qwen/Qwen3-8B", "-o", f"{NOWHERE}/x.yaml"),
    ],
    ids=lambda command: command[0],
)
def test_a_folder_that_takes_no_files_is_one_line(experiment, command, capsys):
    assert main([word.format(experiment=experiment) for word in command]) == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1, errors
    assert NOWHERE in errors


@needs_proc
def test_a_cache_that_takes_no_files_only_forgets(experiment, tmp_path, monkeypatch):
    monkeypatch.setenv("SERVECAST_CACHE", NOWHERE)
    assert main(["sweep", str(experiment), "--out", str(tmp_path / "out"), "--workers", "1", "--quiet"]) == 0
    assert (tmp_path / "out" / "sweep.parquet").exists()


def test_no_home_and_an_ascii_locale_change_nothing(tmp_path):
    path = tmp_path / "ünïcode é 実験.yaml"
    path.write_text(EXPERIMENT + "name: mesure à 実験\n", encoding="utf-8")
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    out = tmp_path / "aus gäbe"
    run = sim("run", path, "--out", out, "--quiet", without=("HOME", "PYTHONIOENCODING"), **plain)
    assert (run.returncode, run.stderr) == (0, b"")
    assert json.loads((out / "manifest.json").read_bytes())["experiment"]["name"] == "mesure à 実験"
    refused = sim("run", path, "--set", "engine.kind=é", "--quiet", **plain)
    assert (refused.returncode, refused.stderr.count(b"\n")) == (2, 1)


def test_windows_line_ends_a_byte_order_mark_and_spaces_in_names_change_nothing(experiment, tmp_path, capsys):
    folder = tmp_path / "my experiments"
    folder.mkdir()
    other = folder / "exp.yaml"
    other.write_bytes(b"\xef\xbb\xbf" + EXPERIMENT.replace("\n", "\r\n").encode())
    said = []
    for path in (experiment, other):
        assert main(["run", str(path), "--format", "vllm", "--quiet"]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]


def _hear_interrupts():
    """Undo what a shell does to commands in its background, which hands down to their children, too."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_an_interrupt_ends_a_run_in_one_line(experiment, tmp_path):
    command = [sys.executable, "-m", "sim", "run", str(experiment), "--quiet", "--out", str(tmp_path / "out")]
    many = ["--set", "workload.num_requests=2000000"]
    with subprocess.Popen(
        [*command, *many], stderr=subprocess.PIPE, start_new_session=True, preexec_fn=_hear_interrupts
    ) as process:
        while not (tmp_path / "out").exists() and process.poll() is None:
            time.sleep(0.02)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=60)
        process.kill()
        assert (process.returncode, process.stderr.read()) == (130, b"stopped\n")
    assert not list((tmp_path / "out").iterdir())
