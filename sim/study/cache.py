"""Outcomes of earlier runs, whoever asked for them."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from sim.study.outcome import Outcome
from sim.wholefile import write_whole

__all__ = ["Cache", "default_folder"]

_KEPT = ("ok", "infeasible")  # what the key determines; other failures may pass


def default_folder() -> Path | None:
    """Return ``$SERVECAST_CACHE``, else the user's cache folder; None for somebody who has none."""
    if chosen := os.environ.get("SERVECAST_CACHE"):
        return Path(chosen)
    with contextlib.suppress(RuntimeError):  # no HOME
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "servecast"
    return None


class Cache:
    """Outcomes by key, one JSON file each; without a *folder*, or with one that cannot be used, it forgets."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder and folder / "points"

    def get(self, key: str) -> Outcome | None:
        """Return the outcome of the run with that *key*, if it is known."""
        if self._folder is None:
            return None
        try:
            outcome = json.loads(_file(self._folder, key).read_bytes())
        except (OSError, ValueError):  # ValueError: a disk was full, or somebody edited it
            return None
        return outcome if isinstance(outcome, dict) and outcome.get("status") in _KEPT else None

    def put(self, key: str, outcome: Outcome) -> None:
        """Remember an *outcome*, whole or not at all, where the key determines it."""
        if self._folder is None or outcome["status"] not in _KEPT:
            return
        path = _file(self._folder, key)
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, json.dumps(outcome, allow_nan=False).encode())


def _file(folder: Path, key: str) -> Path:
    return folder / key[:2] / f"{key}.json"  # no folder grows beyond what file systems like
