"""Lines and tables that fit the terminal: a row for each alternative, or where that is too wide a column for each."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Sequence, Set
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["room_of", "say", "tables_of"]

_UNLIMITED = 500  # columns of text: nobody has to fold a file
_COLUMN = 20  # columns of text of one alternative, where each has a column


def room_of(console: Console) -> int:
    """Return the columns of text of the terminal; a file has enough for any table."""
    return shutil.get_terminal_size().columns if console.is_terminal else _UNLIMITED


def say(console: Console, line: str, style: str | None = None) -> None:
    """Print *line* folded between words to the terminal, the rest indented; a file gets it in one."""
    if console.is_terminal:
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        line = textwrap.fill(line, room_of(console), subsequent_indent=indent, break_on_hyphens=False)
    console.print(line, style=style, soft_wrap=True)


def tables_of(rows: Sequence[Sequence[str]], texts: Set[str], room: int) -> Iterator[Table]:
    """Yield *rows*, the first of which has the headings, as one table or on their sides, so many abreast as fit.

    Parameters
    ----------
    texts
        Headings of the columns that are flush left.
    room
        Columns of text that there are.
    """
    widths = [2 + max(map(len, column)) for column in zip(*rows, strict=True)]
    if sum(widths) <= room:
        yield _table(rows, texts)
        return
    abreast = max(1, room // _COLUMN - 1)
    for first in range(1, len(rows), abreast):
        yield _table([*zip(rows[0], *rows[first : first + abreast], strict=True)], fold=True)


def _table(rows: Sequence[Sequence[str]], texts: Set[str] = frozenset(), fold: bool = False) -> Table:
    """Return *rows*; all but *texts* are flush right, or cells are folded."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in rows[0]:
        right = heading not in texts and not fold
        table.add_column(heading, justify="right" if right else "left", no_wrap=not fold, overflow="fold")
    for row in rows[1:]:
        table.add_row(*row)
    return table
