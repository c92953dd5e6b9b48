"""A share of the long run: every parser, a few inputs each; `python tests/fuzz/run.py` is all of it."""

import subprocess
import sys
from pathlib import Path

RUN = Path(__file__).with_name("run.py")


def test_no_parser_does_anything_but_read_or_refuse(tmp_path):
    command = [sys.executable, str(RUN), "--inputs", "2000", "--seed", "11"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
