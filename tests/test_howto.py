"""Every command of docs/howto.md runs as it stands, and prints something."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

PAGE = (ROOT / "docs" / "howto.md").read_text()
BLOCKS = dict(re.findall(r"^## (\w+).*?```sh\n(.+?)```", PAGE, re.DOTALL | re.MULTILINE))


@pytest.mark.parametrize("commands", BLOCKS.values(), ids=BLOCKS)
def test_commands_run(commands, tmp_path):
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)}
    for command in commands.splitlines():
        run = subprocess.run(command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        assert run.stdout or any((tmp_path / "out").iterdir())
