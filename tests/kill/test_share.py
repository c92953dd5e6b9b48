"""A share of the long run: a few kills each; `python tests/kill/run.py --kills 100` is all of it."""

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).with_name("run.py")


@pytest.mark.skipif(sys.platform != "linux", reason="kills groups of processes")
def test_what_is_killed_leaves_whole_files_and_goes_on(tmp_path):
    command = [sys.executable, str(RUN), "--kills", "4", "--job", "run", "--job", "search", "--seed", "5"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
