"""Which cases a command takes from its files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from calibration.cases.of_files import check_selection, kind_of
from sim.errors import SimError, UserError

__all__ = ["Selection", "add_selection", "files_of", "selection_of"]


class Selection(NamedTuple):
    """Files, the cells that a case must have, and cells to assume where they are empty."""

    files: list[Path]
    where: dict[str, str]
    assumed: dict[str, str]


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add the options of a selection to *parser*."""
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="COLUMN=VALUE",
        help="only these cases; COLUMN~=VALUE: those that contain it; repeatable",
    )
    parser.add_argument(
        "--assume",
        action="append",
        default=[],
        metavar="COLUMN=VALUE",
        help="for cells that are empty, such as gpu=H100-SXM-80GB or tp=8; repeatable",
    )


def selection_of(options: argparse.Namespace) -> Selection:
    """Return what *options* select, of folders the files that can be read; a line on stderr names the others.

    Raises
    ------
    UserError
        A text that is not ``COLUMN=VALUE``, a column that cases do not have, or a folder without a file to read.
    """
    files = list(_readable(options.files))
    where, assumed = _pairs("--where", options.where), _pairs("--assume", options.assume)
    check_selection(files, where, assumed)
    return Selection(files, where, assumed)


def files_of(names: Iterable[str]) -> Iterator[Path]:
    """Yield the files of *names*, of a folder all in it but hidden ones; raise `UserError` for one without any."""
    for path in map(Path, names):
        found = _in_folder(path) if path.is_dir() else [path]
        if not found:
            raise UserError("there is no file in this folder", file=str(path))
        yield from found


def _in_folder(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))


def _readable(names: Iterable[str]) -> Iterator[Path]:
    """Yield files as `files_of` does, without those of a folder that hold no measurements."""
    for name in names:
        if not Path(name).is_dir():
            yield Path(name)
            continue
        found = [path for path in files_of([name]) if _holds_measurements(path)]
        if not found:
            raise UserError("no file in this folder holds measurements", file=name)
        yield from found


def _holds_measurements(path: Path) -> bool:
    from calibration.importers import import_file

    try:
        return kind_of(path) != "runs" or bool(import_file(path))
    except SimError as problem:
        sys.stderr.write(f"left out: {str(problem).partition('; known: ')[0]}\n")
        return False


def _pairs(option: str, assignments: Sequence[str]) -> dict[str, str]:
    for assignment in assignments:
        if "=" not in assignment:
            raise UserError(f"{assignment!r} is not COLUMN=VALUE", file=option)
    parts = (assignment.split("=", 1) for assignment in assignments)
    return {column.strip(): value.strip() for column, value in parts}
