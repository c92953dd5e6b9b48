"""Where profiles are: the user's own ``profiles`` folders first, then the one that comes with the program."""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path
from typing import Literal

import sim
from sim.paths import is_file

__all__ = ["Kind", "exact", "exists", "folded", "folders", "name_in", "names", "profile_files"]

Kind = Literal[
    "hardware", "models", "engines", "flags", "grammars", "workloads", "prices", "apis", "languages",
    "calibrated/hardware", "calibrated/engines", "calibrated/errors", "calibrated/all_to_all",
    "calibrated/links", "calibrated/power",
]


def names(kind: Kind, beside: Path | None = None) -> list[str]:
    """Return the names of all profiles of *kind*, without aliases, in alphabetical order."""
    found = {name_in(folder, path) for folder in folders(kind, beside) for path in folder.rglob("*.yaml")}
    return sorted(found, key=str.casefold)


def exists(kind: Kind, name: str, beside: Path | None = None) -> bool:
    """Tell whether there is a profile of this very *name*."""
    return any(is_file(folder / f"{name}.yaml") for folder in folders(kind, beside))


def exact(kind: Kind, name: str, beside: Path | None = None) -> Path | None:
    """Return the file that has just this *name* in the first folder there is; it spares listing the folders."""
    folder = next((folder for folder in folders(kind, beside) if folder.is_dir()), None)
    if folder is None or Path(name).is_absolute() or ".." in Path(name).parts:
        return None
    path = folder / f"{name}.yaml"
    return path if is_file(path) else None


def profile_files(beside: Path | None = None) -> list[Path]:
    """Return every file that some name may mean, the user's own and the program's."""
    return [path for root in _roots(beside) for path in sorted(root.rglob("*.yaml"))]


def folders(kind: Kind, beside: Path | None = None) -> list[Path]:
    """Return where profiles of *kind* may be, the user's own first."""
    return [root / kind for root in _roots(beside)]


def _roots(beside: Path | None) -> tuple[Path, ...]:
    return _roots_in(beside, os.getcwd())


@functools.cache
def _roots_in(beside: Path | None, current: str) -> tuple[Path, ...]:
    package = Path(sim.__file__).parent
    installed, checkout = package / "_profiles", package.parent / "profiles"
    own = [beside / "profiles"] if beside else []
    roots = [*own, Path(current, "profiles"), installed if installed.is_dir() else checkout]
    return tuple(dict.fromkeys(roots))


def name_in(folder: Path, path: Path) -> str:
    """Return the name of the profile at *path*, below the *folder* of its kind."""
    return path.relative_to(folder).with_suffix("").as_posix()


def folded(text: str) -> str:
    """Return a name without regard to case, spaces and underscores."""
    return re.sub(r"[ _-]+", "-", text).casefold()
