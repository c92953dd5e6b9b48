"""A sweep survives the death of its parent and of a worker, without losing or repeating a point."""

import os
import signal
import subprocess
import sys
import time

import pytest
from pyarrow import parquet
from small_study import sweep_of, write

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
POINTS = 10
SWEEP = f"{{workload.arrivals.rate: {list(range(1, POINTS + 1))}}}"


def start(path, out, *options):
    options = ("--out", str(out), "--workers", "2", "--no-cache", *options)
    command = [sys.executable, "-m", "sim", "sweep", str(path), *options]
    with (out.parent / "stderr").open("w") as errors:  # no pipe: workers of a killed parent would hold it open
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)


def finish(process, out):
    status, errors = process.wait(timeout=60), (out.parent / "stderr").read_text()
    assert status == 0, errors
    return errors


def parts(out):
    return list((out / "_points").glob("*.parquet"))


def when_some_are_done(process, out):
    deadline = time.monotonic() + 60
    while len(parts(out)) < 3 and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.01)


def worker_of(process):
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as stat, open(f"/proc/{entry}/cmdline") as command:
                    if int(stat.read().rsplit(")", 1)[1].split()[1]) == process.pid and "LokyProcess" in command.read():
                        return int(entry)
            except OSError:
                continue
    raise AssertionError("no worker")


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    path = write(folder, SWEEP, requests=1000)
    sweep_of(path, folder / "out")
    return path, (folder / "out" / "sweep.parquet").read_bytes()


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def test_killed_and_resumed(reference, out):
    path, expected = reference
    process = start(path, out)
    when_some_are_done(process, out)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = parts(out)
    assert 3 <= len(done) < POINTS
    assert not (out / "sweep.parquet").exists()
    errors = finish(start(path, out, "--resume"), out)
    assert f"{POINTS - len(done)} of {POINTS - len(done)} points" in errors
    assert (out / "sweep.parquet").read_bytes() == expected


def test_a_killed_worker_is_replaced(reference, out):
    path, expected = reference
    process = start(path, out)
    when_some_are_done(process, out)
    os.kill(worker_of(process), signal.SIGKILL)
    finish(process, out)
    assert (out / "sweep.parquet").read_bytes() == expected
    assert parquet.read_table(out / "sweep.parquet")["point"].to_pylist() == list(range(POINTS))
