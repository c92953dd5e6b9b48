"""Wheels whose hot path is compiled by mypyc, on request; see "Compiled" in benchmarks/README.md.

Nothing is written beside the sources, where a compiled module would go on hiding its source after a change.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SETUP = """\
from mypyc.build import mypycify
from setuptools import setup

setup(name="servecast", packages=[], ext_modules=mypycify({modules!r}, opt_level="3", debug_level="0"))
"""


class Compiled(BuildHookInterface):  # type: ignore[type-arg]
    """Adds to a wheel what mypyc makes of the modules that pyproject.toml lists; both kinds compute the same bytes."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile a copy of the sources, and list the results for the wheel."""
        if version == "editable":
            return
        self._work = Path(mkdtemp())
        shutil.copytree(Path(self.root, "sim"), self._work / "sim")
        shutil.copy(Path(self.root, "pyproject.toml"), self._work / "mypy.toml")  # setuptools is to see no project
        modules = ["--config-file=mypy.toml", *self.config["modules"]]
        (self._work / "setup.py").write_text(_SETUP.format(modules=modules), encoding="utf-8")
        subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=self._work, check=True)
        for library in [*self._work.glob("*.so"), *self._work.glob("sim/**/*.so")]:
            build_data["force_include"][str(library)] = str(library.relative_to(self._work))
        build_data["pure_python"], build_data["infer_tag"] = False, True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the copy."""
        if version != "editable":
            shutil.rmtree(self._work)
