"""What the answer to an experiment depends on, as one hash: equal keys, equal answers."""

from __future__ import annotations

import functools
import hashlib
import json
import platform
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import sim
from sim.experiment import Experiment
from sim.paths import is_file, located
from sim.profiles.folders import profile_files
from sim.profiles.library import find
from sim.simulate.inputs import file_hash, input_files

__all__ = ["Keys"]


class Keys:
    """Makes keys of the experiments of one study.

    A key covers the experiment with all its defaults, the content of every file that it names or that a name in it may
    lead to, and the program's own source. It covers all profiles, not only those that a run is known to read: a key
    that changes too often costs a run, one that stays the same too long costs a wrong answer. The name of an experiment
    and what is asked of it (`sweep`, `search`) change no run and are left out.
    """

    def __init__(self) -> None:
        self._find = functools.cache(find)
        self._profiles = functools.cache(lambda beside: _hash_of(profile_files(beside)))

    def of(self, experiment: Experiment) -> str:
        """Return the key of *experiment*; raise `UserError` if a file that it needs is missing."""
        written = experiment.model_dump(mode="json", exclude={"name", "sweep", "search"})
        files = {*input_files(experiment, self._find).values(), *_named(written, experiment.folder)}
        profiles = self._profiles(experiment.folder)
        parts = (json.dumps(written, sort_keys=True), _hash_of(sorted(files)), profiles, _program())
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _hash_of(files: Iterable[Path]) -> str:
    """Return one hash of the contents of *files*, wherever they lie."""
    return hashlib.sha256("".join(map(file_hash, files)).encode()).hexdigest()


def _named(value: Any, beside: Path) -> Iterator[Path]:
    """Yield the files whose paths stand anywhere in *value*."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _named(item, beside)
    elif isinstance(value, str) and is_file(path := located(value, beside)):
        yield path


@functools.cache
def _program() -> str:
    """Return the hash of this program's source, and of what its random draws depend on."""
    package = Path(sim.__file__).parent
    source = _hash_of(sorted(package.rglob("*.py")))
    return f"{source} python {platform.python_version()} numpy {np.__version__}"
