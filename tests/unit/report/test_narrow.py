import io

import pytest
from rich.console import Console

from sim.report.narrow import tables_of

ROWS = [["card", "GPUs", "why"], *([name, "4", "cheap, and near at hand"] for name in ("A" * 30, "B", "C", "D"))]


def lines_of(room):
    console = Console(file=io.StringIO(), width=room)
    for table in tables_of(ROWS, {"card", "why"}, room):
        console.print(table)
    return [line.split() for line in console.file.getvalue().splitlines() if line.strip() and "─" not in line]


def test_where_there_is_room_each_alternative_is_a_row():
    assert lines_of(80)[2] == ["B", "4", "cheap,", "and", "near", "at", "hand"]


@pytest.mark.parametrize(("room", "abreast"), [(60, 2), (40, 1)])
def test_elsewhere_each_is_a_column_and_nothing_is_cut(room, abreast):
    lines = lines_of(room)
    assert [len(line) - 1 for line in lines if line[0] == "GPUs"] == [abreast] * (4 // abreast)
    assert sum(cell.count("A") for line in lines for cell in line) == 30
    assert not any("…" in cell for line in lines for cell in line)
