"""What ``sim sweep`` prints of its rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.report.json import to_json

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["show"]

Row = Mapping[str, Any]

_RESULTS = {
    "output_tok_s_per_gpu": "tok/s/GPU",
    "median_ttft_ms": "TTFT p50",
    "p95_ttft_ms": "p95 [ms]",
    "median_tpot_ms": "TPOT p50",
    "p95_tpot_ms": "p95 [ms]",
    "kv_utilization_peak": "KV peak",
    "request_goodput": "goodput/s",
    "cost_usd_per_mtok_output": "$/Mtok",
}
"""Results in the table, those that any row has."""
_SHARES = ("kv_utilization_peak",)
_MOST_ROWS = 50
_WHOLE = 1000  # from here on four digits leave no fraction, and might need an exponent
_WIDEST = 500  # columns of text: a table is never squeezed


def show(rows: Sequence[Row], file: Path, form: str) -> None:
    """Print *rows* on standard output as ``table`` (the first ones only) or ``json``; *file* has them all."""
    if form == "json":
        print(to_json({"table": str(file), "points": list(rows)}))
        return
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    console.width = max(console.width, _WIDEST)
    console.print(_table(rows))
    for line in _facts(rows, file):
        console.print(line, soft_wrap=True)


def _table(rows: Sequence[Row]) -> Table:
    from rich import box
    from rich.table import Table

    axes, results = _axes(rows), [name for name in _RESULTS if any(row.get(name) is not None for row in rows)]
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("point", *_headings(axes), *(_RESULTS[name] for name in results)):
        table.add_column(heading, justify="right", no_wrap=True)
    bounds = sorted({name for row in rows for name in row if name.startswith("slo.") and name.endswith(".met")})
    for heading in (*(["SLO"] if bounds else []), "status"):
        table.add_column(heading, no_wrap=True)
    for row in rows[:_MOST_ROWS]:
        cells = [_cell(row.get(name), name) for name in ("point", *axes, *results)]
        table.add_row(*cells, *([_slo(row, bounds)] if bounds else []), _status(row))
    return table


def _slo(row: Row, bounds: Sequence[str]) -> str:
    """Return ``met``, or the bounds that a row misses; a bound that nobody measured says nothing."""
    judged = [name for name in bounds if row.get(name) is not None]
    missed = ", ".join(name.split(".", 1)[1].removesuffix(".met") for name in judged if not row[name])
    return f"{missed} MISSED" if missed else "met" if judged else "-"


def _status(row: Row) -> str:
    """Return the status, and of a run with a result whether its load grew without end."""
    overloaded = row.get("steady_state") == "overloaded"
    return f"{row['status']}, overloaded" if overloaded else _cell(row["status"], "status")


def _axes(rows: Sequence[Row]) -> list[str]:
    """Return the columns between the number of a point and its replication; the seed as well if there are several."""
    names = dict.fromkeys(name for row in rows for name in list(row)[1 : list(row).index("replication")])
    return [*names, "seed"] if any(row["replication"] for row in rows) else list(names)


def _headings(paths: Sequence[str]) -> list[str]:
    """Return the last part of each of the *paths*, the whole path where two end alike."""
    ends = Counter(path.rpartition(".")[2] for path in paths)
    return [end if ends[end := path.rpartition(".")[2]] == 1 else path for path in paths]


def _cell(value: Any, name: str) -> str:
    if value is None:
        return "-"
    if name in _SHARES:
        return f"{value:.1%}"
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= _WHOLE else f"{value:,.4g}"


def _facts(rows: Sequence[Row], file: Path) -> Iterator[str]:
    if len(rows) > _MOST_ROWS:
        yield f"... and {len(rows) - _MOST_ROWS:,} more"
    without: defaultdict[str, list[int]] = defaultdict(list)
    for row in rows:
        if row["status"] != "ok":
            without[f"{row['status']}: {row['error']}"].append(row["point"])
    for error, points in list(without.items())[:_MOST_ROWS]:
        yield f"  ! point {', '.join(map(str, points))} {error}"
    done = len(rows) - sum(map(len, without.values()))
    yield f"{len(rows):,} points, {done:,} with a result; all in {file}"
