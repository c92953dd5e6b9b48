"""Which cases a command takes from its files."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sim.errors import UserError

__all__ = ["Selection", "add_selection", "selection_of"]


class Selection(NamedTuple):
    """Files, the cells that a case must have, and cells to assume where they are empty."""

    files: list[Path]
    where: dict[str, str]
    assumed: dict[str, str]


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add the options of a selection to *parser*."""
    parser.add_argument("--where", action="append", default=[], metavar="COLUMN=VALUE", help="only these cases")
    parser.add_argument(
        "--assume",
        action="append",
        default=[],
        metavar="COLUMN=VALUE",
        help="for cells that are empty, such as gpu=H100-SXM-80GB or tp=8; repeatable",
    )


def selection_of(options: argparse.Namespace) -> Selection:
    """Return what *options* select; raise `UserError` for a text that is not ``COLUMN=VALUE``."""
    return Selection(list(map(Path, options.files)), _pairs(options.where), _pairs(options.assume))


def _pairs(assignments: Sequence[str]) -> dict[str, str]:
    for assignment in assignments:
        if "=" not in assignment:
            raise UserError(f"{assignment!r} is not COLUMN=VALUE")
    return dict(assignment.split("=", 1) for assignment in assignments)
