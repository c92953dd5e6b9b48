"""What ``sim search`` prints of its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sim.report.json import to_json
from sim.report.narrow import room_of, say, tables_of
from sim.units import format_seconds

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["show"]

Plain = Mapping[str, Any]
"""An answer, or a part of it, as `as_dict` returns it."""

_WIDEST = 500  # columns of text: a table is never squeezed
_MOST_DROPPED = 60


def show(answer: Plain, form: str) -> None:
    """Print *answer* on standard output as ``table`` or ``json``."""
    if form == "json":
        print(to_json(answer))
        return
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    console.width = max(console.width, _WIDEST)
    _SHOWN[answer["kind"]](answer, console)


def _capacity(answer: Plain, console: Console) -> None:
    unit = answer["load_words"]
    low, high = answer["interval"]
    say(console, f"{answer['name']}: the highest load within {_slo(answer)}", style="bold")
    say(console, f"  {answer['capacity']:,.4g} {unit} by the model; 90 % interval {low:,.3g} - {high:,.3g}")
    per_gpu = f"{answer['output_throughput']:,.0f} output tok/s, {answer['output_tok_s_per_gpu']:,.1f} per GPU"
    say(console, f"  there: {_latencies(answer)}; {per_gpu}; {_kv_peak(answer)}")
    if answer["binding_objective"]:
        say(console, f"  a little more misses {_beyond(answer)}; limited by {answer['binding_sentence']}")
    else:
        say(console, "  that is the largest load considered (search.high)", style="yellow")
    say(console, f"  {answer['at_confidence']:,.4g} {unit} with {answer['confidence']:.0%} confidence")
    if not answer["decided"]:
        say(console, "  the last step is within the noise of the replications", style="yellow")
    _footer(answer, answer["statement"], console)


def _kv_peak(run: Plain) -> str:
    return f"KV cache {run['kv_utilization_peak']:.0%} full at most"


def _beyond(answer: Plain) -> str:
    if answer["binding_objective"] == "too short":
        return "a steady state within the requests of the workload (num_requests)"
    return str(answer["binding_objective"])


def _cheapest(answer: Plain, console: Console) -> None:
    first, confidence = answer["recommended"], answer["confidence"]
    say(console, f"{answer['name']}: {answer['model']} for {_load(answer)}, within {_slo(answer)}", style="bold")
    say(
        console,
        f"Take {first['gpus']} x {first['gpu']} as {_fleet(first)}: {confidence:.0%} sure to keep the SLO",
        "bold",
    )
    say(console, f"  by the model alone {first['nominal_gpus']}; 90 % interval {_range(first['gpus_interval'])} GPUs")
    say(console, f"  {_money(first)}; {first['price']}")
    limit = f"{first['objective']} is the closest to its bound, for {first['peak']['binding_sentence']}"
    say(console, f"  at the peak {_latencies(first['peak'])}, {_kv_peak(first['peak'])}; {limit}")
    room = room_of(console)
    rows = [_headings(answer), *(_alternative(answer, each) for each in answer["alternatives"])]
    for table in tables_of(rows, {"accelerator", "deployment", "limited by", "why"}, room):
        console.print(table, width=room)
    for gpu, reason in answer["unable"].items():
        say(console, f"  {gpu}: none keeps the SLO; closest: {reason}")
    say(console, f"{len(answer['dropped'])} other deployments:")
    for each in answer["dropped"][:_MOST_DROPPED]:
        say(console, f"  {each['gpu']} {each['label']}: {each['reason']}")
    if len(answer["dropped"]) > _MOST_DROPPED:
        say(console, f"  ... and {len(answer['dropped']) - _MOST_DROPPED:,} more")
    if answer["caution"]:
        say(console, f"  ! {answer['caution']}", style="yellow")
    _footer(answer, first["peak"]["statement"], console)


def _headings(answer: Plain) -> list[str]:
    bounds = (f"{clause} [ms]" for clause in answer["slo_ms"])
    counts, costs = ("GPUs", "90 %", "model"), ("$/month", "$/Mtok", "at peak", "kW")
    return ["accelerator", *counts, *costs, *bounds, "deployment", "limited by", "first below [$/h]", "why"]


def _alternative(answer: Plain, each: Plain) -> list[str]:
    peak = each["peak"]
    return [
        each["gpu"],
        str(each["gpus"]),
        _range(each["gpus_interval"]),
        str(each["nominal_gpus"]),
        _number(each["usd_per_month"], ",.0f"),
        _number(each["usd_per_mtok"], ".2f"),
        _number(each["usd_per_mtok_at_peak"], ".2f"),
        _number(each["kw"], ".1f"),
        *(_with_interval(peak, clause) for clause in answer["slo_ms"]),
        _fleet(each),
        f"{each['objective']}: {peak['binding_limit']}",
        _number(each["turning_usd_per_hour"], ".2f"),
        each["why"],
    ]


def _pareto(answer: Plain, console: Console) -> None:
    from rich import box
    from rich.table import Table

    points = answer["points"]
    say(console, f"{answer['name']}: one replica of each deployment, by requests in flight", style="bold")
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("accelerator", "deployment"):
        table.add_column(heading, no_wrap=True)
    for heading in ("in flight", "tok/s/user", "tok/s/GPU", "$/Mtok", "TTFT [ms]", "J/tok"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("limited by", "on the fronts of"):
        table.add_column(heading, no_wrap=True)
    for each in sorted(points, key=lambda point: (not point["fronts"], -point["tok_s_user"])):
        names = ("tok_s_user", "tok_s_gpu", "usd_per_mtok", "ttft_ms", "energy_j_per_tok")
        cells = [_digits(each[name]) for name in names]
        fronts = ", ".join(each["fronts"]) or "-"
        table.add_row(each["gpu"], each["label"], str(each["concurrency"]), *cells, each["binding_limit"], fronts)
    console.print(table)
    console.print("Off the fronts, and what is better:")
    for each in points:
        for front, reason in each["dominated"].items():
            name = f"{each['gpu']} {each['label']} at {each['concurrency']}"
            say(console, f"  {front}: {name}; {reason}")
    for name, reason in answer["unable"].items():
        say(console, f"  {name} cannot be run: {reason}")
    if answer["caution"]:
        say(console, f"  ! {answer['caution']}", style="yellow")
    _footer(answer, "", console)


def _sensitivity(answer: Plain, console: Console) -> None:
    from rich import box
    from rich.table import Table

    say(console, f"{answer['name']}: what its figures depend on", style="bold")
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("output", "path"):
        table.add_column(heading, no_wrap=True)
    for heading in ("from", "to", "at the low end", "as it is", "at the high end", "swing"):
        table.add_column(heading, justify="right", no_wrap=True)
    for each in answer["effects"]:
        numbers = (each[name] for name in ("low", "high", "at_low", "base", "at_high"))
        table.add_row(each["output"], each["path"], *map(_digits, numbers), _number(each["swing"], "+.0%"))
    console.print(table)
    for each in answer["indices"]:
        first, total = (f"{each[kind]:.2f} ({_ends(each[f'{kind}_interval'])})" for kind in ("first", "total"))
        say(console, f"  variance of {each['output']}: {each['path']} alone {first}, with the others {total}")
    if answer["best"]:
        say(console, f"As it is, the best is {answer['best']}", style="bold")
    for each in answer["switches"]:
        change = f"from {each['before']} to {each['after']}: {each['reason']}"
        say(console, f"  from {each['path']} = {_digits(each['value'])} on, {change}")
    if answer["best"] and not answer["switches"]:
        console.print("  nothing within the ranges changes that")
    _footer(answer, "", console)


def _ends(interval: tuple[float, float]) -> str:
    return " to ".join(f"{end:.2f}" for end in interval)


def _digits(value: float | None) -> str:
    """Return three digits of a number, and no exponent."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _with_interval(run: Plain, clause: str) -> str:
    low, high = run["slo_intervals_ms"][clause]
    value = run["slo_values_ms"][clause]
    return f"{value:,.0f}" if low == high else f"{value:,.0f} ({low:,.0f}-{high:,.0f})"


def _fleet(each: Plain) -> str:
    spare = f" + {each['spare']} spare" if each["spare"] else ""
    return f"{each['replicas']}{spare} x {each['label']}"


def _money(each: Plain) -> str:
    if each["usd_per_month"] is None:
        return "no price known"
    per_mtok = f"${each['usd_per_mtok']:.2f} a million output tokens at the mean load"
    return f"${each['usd_per_month']:,.0f} a month, {per_mtok}, ${each['usd_per_mtok_at_peak']:.2f} at the peak"


def _range(interval: tuple[int, int | None]) -> str:
    low, high = interval
    return f"{low}-{'more' if high is None else high}"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _load(answer: Plain) -> str:
    unit, load, peak = answer["load_words"], answer["load"], answer["peak"]
    return f"{load:,.4g} {unit}" + (f", {peak:,.4g} at the peak" if peak != load else "")


def _slo(answer: Plain) -> str:
    bounds = (f"{name} <= {format_seconds(value / 1e3)}" for name, value in answer["slo_ms"].items())
    return ", ".join((*bounds, *(f"{name} >= {share:.6g}" for name, share in answer["slo_least_shares"].items())))


def _latencies(run: Plain) -> str:
    values = (f"{name} {format_seconds(value / 1e3)}" for name, value in run["slo_values_ms"].items())
    return ", ".join((*values, *(f"{name} {share:.2%}" for name, share in run["slo_shares"].items())))


def _footer(answer: Plain, statement: str, console: Console) -> None:
    for line in _facts(answer, statement):
        say(console, line)


def _facts(answer: Plain, statement: str) -> Iterator[str]:
    if statement:
        yield f"  ! {statement}"
    yield f"{answer['runs']:,} runs"


_SHOWN: dict[str, Callable[[Plain, Console], None]] = {
    "capacity": _capacity,
    "cheapest": _cheapest,
    "pareto": _pareto,
    "sensitivity": _sensitivity,
}
