"""The files that a visitor has uploaded: the only files that an experiment on the page may name."""

from __future__ import annotations

import gzip
import io
import re
import shutil
import tempfile
import weakref
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any, Literal

from pydantic import BaseModel

from sim.errors import SimError, TraceError, UserError
from sim.experiment import Experiment
from sim.profiles.library import load_calibrated_engine, load_model
from sim.workload.traces import read_trace

__all__ = ["Kind", "Uploads", "is_profile_name", "plain"]

Kind = Literal["model", "trace", "loads", "map", "constants", "benchmark"]

MOST_BYTES = 64 << 20
"""Largest file, unpacked: a small one may unpack to terabytes."""
MOST_FILES = 50
_GZIP = b"\x1f\x8b"
_SUFFIXES: dict[Kind, tuple[str, ...]] = {
    "model": (".json",),
    "trace": (".csv", ".jsonl", ".json"),
    "loads": (".json", ".csv", ".npy"),
    "map": (".json", ".yaml"),
    "constants": (".yaml",),
    "benchmark": (),
}
_FIELDS: dict[str, Kind] = {
    "model": "model",
    "pools.model": "model",
    "workload.arrivals.path": "trace",
    "moe.popularity.path": "loads",
    "moe.placement.path": "map",
    "engine.calibration": "constants",
    "pools.engine.calibration": "constants",
}
"""Fields that may name a file, and what it must have been uploaded as."""
_MODELS = ("model", "pools.model")
_PATHS = re.compile(r"(?<![\w.])(?:[A-Za-z]:)?[/\\](?:[^\s/\\:'\"]+[/\\])+")


def plain(error: SimError) -> str:
    """Return what *error* says without the folders of the server."""
    return _PATHS.sub("", str(error))


class Uploads:
    """The uploaded files of one session, in a temporary folder that ends with it.

    Attributes
    ----------
    folder
        Where they lie; an experiment whose document is in it finds them by their names.
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="servecast-")).resolve()
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self._kinds: dict[str, Kind] = {}

    def names(self, kind: Kind) -> list[str]:
        """Return the names of the files of *kind*, in the order they came."""
        return [name for name, its in self._kinds.items() if its == kind]

    def names_for(self, path: str) -> list[str]:
        """Return the names of the files that the field at the dotted *path* may name."""
        return self.names(_FIELDS[path]) if path in _FIELDS else []

    def add(self, name: str, content: bytes, kind: Kind) -> Path:
        """Keep a file and return its path; one of the same name is replaced.

        Raises
        ------
        UserError
            It is too large, or nothing that its kind may be.
        """
        path = self.folder / _safe(name, kind)
        if path.name not in self._kinds and len(self._kinds) >= MOST_FILES:
            raise UserError(f"{MOST_FILES} files are enough: reload the page to begin anew", file=path.name)
        path.write_bytes(_unpacked(content, path.name))
        try:
            _check(path, kind)
        except SimError:
            path.unlink()
            self._kinds.pop(path.name, None)
            raise
        self._kinds[path.name] = kind
        return path

    def remove(self, kind: Kind) -> None:
        """Delete all files of *kind*."""
        for name in self.names(kind):
            (self.folder / name).unlink(missing_ok=True)
            del self._kinds[name]

    def require_own(self, experiment: Experiment) -> None:
        """Raise a `ConfigError` if *experiment* names any file that is not one of these."""
        for path, value in _texts(experiment, ""):
            name = str(value)
            if name in self._kinds and _FIELDS.get(path) == self._kinds[name]:
                continue
            if isinstance(value, PurePath) or (path in _MODELS and not is_profile_name(name)):
                missing = f"{name!r} was not uploaded here: files are chosen by uploading them"
                raise experiment.error(path, missing)
            if not is_profile_name(name):
                raise experiment.error(path, f"{name!r} looks like a path: only profiles by name and uploads are read")


def _texts(value: Any, path: str) -> Iterator[tuple[str, str | PurePath]]:
    """Yield every text and path in *value* with its dotted path; the name of an experiment is never opened."""
    if isinstance(value, BaseModel):
        value = {name: getattr(value, name) for name in type(value).model_fields} | (value.model_extra or {})
    if isinstance(value, dict):
        for key, item in value.items():
            if path or key != "name":
                yield from _texts(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item, path)
    elif isinstance(value, str | PurePath):
        yield path, value


def is_profile_name(text: str) -> bool:
    """Tell whether *text* cannot lead to a file other than a profile: it has no suffix of one and stays below."""
    steps = PurePath(text.replace("\\", "/"))
    climbs = steps.is_absolute() or text.startswith("~") or ".." in steps.parts or "\0" in text
    return bool(steps.parts) and not climbs and steps.suffix not in (".yaml", ".yml", ".json")


def _safe(name: str, kind: Kind) -> str:
    """Return a file name without folders or odd characters, with a suffix that its kind may have."""
    base = PurePath(name.replace("\\", "/")).name.removesuffix(".gz")
    kept = re.sub(r"[^\w.+-]+", "_", base, flags=re.ASCII).strip("._")[-80:] or "file"
    suffixes = _SUFFIXES[kind]
    return kept if not suffixes or kept.endswith(suffixes) else kept + suffixes[0]


def _unpacked(content: bytes, name: str) -> bytes:
    if content.startswith(_GZIP):
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
                content = stream.read(MOST_BYTES + 1)
        except (OSError, EOFError, zlib.error):
            raise TraceError("is a broken gzip file", file=name) from None
    if len(content) > MOST_BYTES:
        raise TraceError(f"is larger than {MOST_BYTES >> 20} MiB", file=name)
    return content


def _check(path: Path, kind: Kind) -> None:
    """Read the file once as what it is said to be, so that a bad one is refused where it is uploaded."""
    if kind == "model":
        load_model(path.name, path.parent)
    elif kind == "trace":
        read_trace(path)
    elif kind == "loads":
        from sim.moe.recordings import read_loads

        read_loads(path)
    elif kind == "constants":
        load_calibrated_engine(path.name, path.parent)
    elif kind == "map":
        from sim.moe.recordings.maps import read_map

        read_map(path)
