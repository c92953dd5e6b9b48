"""What ``sim compare`` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sim.report.json import to_json
from sim.report.table import number

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["TITLES", "show"]

TITLES = {
    "output_throughput": "output tok/s",
    "output_tok_s_per_gpu": "output tok/s/GPU",
    "request_throughput": "requests/s",
    "request_goodput": "goodput [requests/s]",
    "mean_ttft_ms": "TTFT mean [ms]",
    "p95_ttft_ms": "TTFT p95 [ms]",
    "mean_tpot_ms": "TPOT mean [ms]",
    "p95_tpot_ms": "TPOT p95 [ms]",
    "mean_e2el_ms": "end to end mean [ms]",
    "p95_e2el_ms": "end to end p95 [ms]",
    "running_mean": "requests running",
    "kv_utilization_peak": "KV cache used, peak",
    "preemptions": "preemptions",
    "cost_usd_per_mtok_output": "$/Mtok output",
    "energy_j_per_output_tok": "J per output token",
    "facility_power_w": "power with cooling [W]",
}
_WIDEST = 500  # columns of text: a table is never squeezed


def show(comparison: Mapping[str, Any], form: str) -> None:
    """Print *comparison*, as `sim.study.compare.Comparison` has it under public keys, as ``table`` or ``json``."""
    if form == "json":
        print(to_json(comparison))
        return
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    console.width = max(console.width, _WIDEST)
    console.print(_results(comparison))
    if any(side["operations_ms"] for side in comparison["sides"]):
        console.print(_operations(comparison))
    for line in _lines(comparison):
        console.print(line, soft_wrap=True)


def _results(comparison: Mapping[str, Any]) -> Table:
    table = _table("result", comparison["base"])
    others = comparison["differences"]
    for other in others:
        for heading in (other["other"], "ratio", "difference, 90 %"):
            table.add_column(heading, justify="right", no_wrap=True)
    for key, title in TITLES.items():
        if not all(key in other for other in others):
            continue
        cells = [cell for other in others for cell in _difference(other[key])]
        table.add_row(title, number(others[0][key]["base"]), *cells)
    return table


def _difference(found: Mapping[str, Any]) -> Iterator[str]:
    yield number(found["other"])
    yield number(found["ratio"])
    if found["interval"] is None:
        yield "-"
    else:
        low, high = found["interval"]
        yield f"{number(low)} .. {number(high)}{'' if found['sure'] else ' ~'}"


def _operations(comparison: Mapping[str, Any]) -> Table:
    """Show the mean iteration of each side by operation."""
    sides = comparison["sides"]
    table = _table("mean iteration [ms]", *(side["name"] for side in sides))
    names = dict.fromkeys(name for side in sides for name in side["operations_ms"])
    for name in sorted(names, key=lambda name: -max(side["operations_ms"].get(name, 0.0) for side in sides)):
        table.add_row(name, *(number(side["operations_ms"].get(name, 0.0)) for side in sides))
    table.add_row("together", *(number(side["iteration_ms"]) for side in sides), style="bold")
    table.add_row("requests in it", *(number(side["running"]) for side in sides))
    table.add_row("in the queue before the first [ms]", *(number(side["queue_ms"]) for side in sides))
    return table


def _table(*headings: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place else "left", no_wrap=True)
    return table


def _lines(comparison: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"* {sentence}" for sentence in comparison["sentences"])
    runs = comparison["runs"]
    if min(runs) > 1:
        yield f"intervals: {runs[0]} runs each with common seeds; ~ within noise"
    else:
        yield "intervals: twins among the requests of one run each; ~ within noise"
    yield from (f"note: {note}" for note in comparison["notes"])
