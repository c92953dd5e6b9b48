import io

import pytest
from rich.console import Console

from sim.report.narrow import say, tables_of

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


@pytest.mark.parametrize("terminal", [True, False])
def test_a_line_is_folded_between_words_on_a_terminal_only(monkeypatch, terminal):
    monkeypatch.setenv("COLUMNS", "40")
    console = Console(file=io.StringIO(), force_terminal=terminal, color_system=None)
    line = "  take 4 x H100-SXM-80GB as 4 replicas of TP1, which keep all objectives"
    say(console, line)
    lines = console.file.getvalue().splitlines()
    assert " ".join(" ".join(lines).split()) == line.strip()
    assert len(lines) == (2 if terminal else 1)
    assert max(map(len, lines)) <= (40 if terminal else 80)
