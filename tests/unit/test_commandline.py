"""The command line where its streams, its files and its machine fail it: one line, no traceback."""

import errno
import os
import subprocess
import sys

import pytest

from sim import commandline
from sim.__main__ import main
from sim.errors import UserError

SIZE = ("size", "--model", "Qwen/Qwen3-8B", "--gpu", "L40S")


def sim(*arguments, stdout=subprocess.PIPE, **environment):
    return subprocess.run(
        [sys.executable, "-m", "sim", *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        env=os.environ | environment,
        check=False,
        timeout=60,
    )


def test_an_encoding_that_lacks_characters_prints_the_rest():
    run = sim(*SIZE, PYTHONIOENCODING="ascii")
    assert (run.returncode, run.stderr) == (0, b"")
    assert b"Qwen/Qwen3-8B" in run.stdout


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full is needed")
@pytest.mark.parametrize("command", [SIZE, ("profiles", "list")], ids=lambda command: command[0])
def test_a_full_disk_is_one_line(command):
    with open("/dev/full", "wb") as full:
        run = sim(*command, stdout=full)
    assert (run.returncode, run.stderr) == (2, b"error: standard output: No space left on device\n")


@pytest.mark.parametrize("command", [SIZE, ("profiles", "list")], ids=lambda command: command[0])
def test_a_reader_who_has_left_is_no_error(command):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as broken:
        run = sim(*command, stdout=broken)
    assert (run.returncode, run.stderr) == (0, b"")


def test_a_closed_standard_output_is_no_error():
    closed = ["sh", "-c", '"$0" -m sim profiles list >&-', sys.executable]
    run = subprocess.run(closed, stderr=subprocess.PIPE, check=False, timeout=60)
    assert (run.returncode, run.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("failure", "line"),
    [
        (MemoryError(), "error: this machine has too little memory for that\n"),
        (OSError(errno.EACCES, "Permission denied", "a.yaml"), "error: a.yaml: Permission denied\n"),
    ],
)
def test_what_no_reader_tells_is_one_line(monkeypatch, capfd, failure, line):
    def fail(_options):
        raise failure

    monkeypatch.setattr(commandline, "_drop_stdout", lambda: None)
    monkeypatch.setattr("sim.commands.schema.run", fail)
    assert main(["schema"]) == UserError.exit_code
    assert capfd.readouterr().err == line


@pytest.mark.parametrize("action", ["show", "add"])
@pytest.mark.parametrize(
    ("name", "message"),
    [("nowhere.json", "nowhere.json: "), ("empty", "config.json: "), ("latin.json", "latin.json: ")],
)
def test_a_profile_that_cannot_be_read_is_one_line(tmp_path, monkeypatch, capsys, action, name, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "latin.json").write_bytes(b"{\xff}")
    assert main(["profiles", action, name]) == UserError.exit_code
    output, errors = capsys.readouterr()
    assert (output, errors.count("\n")) == ("", 1)
    assert message in errors


def test_a_profile_that_cannot_be_written_is_one_line(tmp_path, capsys):
    assert main(["profiles", "add", "Qwen/Qwen3-8B", "-o", str(tmp_path)]) == UserError.exit_code
    assert capsys.readouterr().err == f"error: {tmp_path}: cannot be written: Is a directory\n"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("run", "e.yaml", "--rate", "4"), "unrecognized arguments: --rate 4 (see python -m sim run --help)"),
        (("--rate", "run", "e.yaml"), "unrecognized arguments: --rate e.yaml (see python -m sim run --help)"),
        (
            (*SIZE, "--context", "8k"),
            "argument --context: '8k' is not a whole number from 1 to 1e+18 (see python -m sim size --help)",
        ),
        (
            (*SIZE, "--gpu-memory-utilization", "x"),
            "argument --gpu-memory-utilization: 'x' is not a number between 0 and 1 (see python -m sim size --help)",
        ),
    ],
)
def test_arguments_that_are_wrong_are_one_line_with_the_command_whose_help_helps(capsys, arguments, line):
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    assert left.value.code == UserError.exit_code
    assert capsys.readouterr().err == f"error: {line}\n"


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ((), "stopped; run the same again to go on\n"),
        (("--no-cache", "--resume"), "stopped; run the same again to go on\n"),
        (("--no-cache",), "stopped\n"),
    ],
)
def test_who_stops_a_sweep_is_told_whether_it_goes_on(monkeypatch, capsys, options, line):
    def interrupted(_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("sim.commands.sweep.run", interrupted)
    assert main(["sweep", "exp.yaml", "--out", "out", *options]) == commandline.INTERRUPTED
    assert capsys.readouterr().err == line


def test_an_interrupt_while_a_command_is_imported_is_one_line(monkeypatch, capsys):
    def interrupted(_parser):
        raise KeyboardInterrupt

    monkeypatch.setattr("sim.commands.schema.add_arguments", interrupted)
    assert main(["schema"]) == commandline.INTERRUPTED
    assert capsys.readouterr().err == "stopped\n"


def test_a_folder_without_a_name_is_refused_before_the_run(capsys):
    assert main(["run", "experiments/8b_l40s_chat.yaml", "--out", ""]) == UserError.exit_code
    assert capsys.readouterr().err == "error: the name of the folder to write into is empty\n"
