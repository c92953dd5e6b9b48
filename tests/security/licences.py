"""Lists the licences of what an installation brings: ``python tests/security/licences.py > docs/licences.md``."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
_HEAD = """\
# Licences

What `pip install servecast` brings, with the licence that each package states; written by
`python tests/security/licences.py > docs/licences.md`. Those in bold are asked for by servecast, the others by them.

| package | licence |
|---|---|
"""


def direct() -> list[str]:
    """Return the names of what servecast asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [Requirement(line).name for line in project["dependencies"]]


def installed() -> dict[str, Distribution]:
    """Return what is installed of it and of what it asks for itself, by name."""
    found: dict[str, Distribution] = {}
    ahead = direct()
    while ahead:
        name = re.sub(r"[-_.]+", "-", ahead.pop()).lower()
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:  # of another platform
            continue
        ahead += _asked_for(found[name])
    return found


def _asked_for(package: Distribution) -> Iterator[str]:
    for requirement in map(Requirement, package.requires or ()):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement.name


def licence_of(package: Distribution) -> str:
    """Return what *package* says of itself: an expression, else the words of its classifiers, else its first line."""
    metadata = package.metadata
    if expression := metadata.get("License-Expression"):
        return str(expression)
    words = [line.rpartition(" :: ")[2] for line in metadata.get_all("Classifier") or () if line.startswith("License")]
    return ", ".join(words) or str(metadata.get("License") or "not stated").splitlines()[0]


def main() -> None:
    """Print the page."""
    mine = {re.sub(r"[-_.]+", "-", name).lower() for name in direct()}
    lines = (
        f"| {f'**{name}**' if name in mine else name} | {licence_of(package)} |\n"
        for name, package in sorted(installed().items())
    )
    sys.stdout.write(_HEAD + "".join(lines))


if __name__ == "__main__":
    main()
