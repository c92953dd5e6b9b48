"""What ``sim cost`` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sim.report.json import to_json
from sim.report.narrow import room_of, say, tables_of
from sim.report.table import number

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["show"]

_WIDEST = 500  # columns of text: a table is never squeezed


def show(money: Mapping[str, Any], form: str) -> None:
    """Print *money*, as `sim.study.money.Money` has it under public keys, as ``table`` or ``json``."""
    if form == "json":
        print(to_json(money))
        return
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    console.width = max(console.width, _WIDEST)
    for line in _about(money):
        say(console, line)
    _print(console, _schemes(money["schemes"]))
    _print(console, _utilizations(money))
    if money["apis"]:
        room = room_of(console)
        for table in tables_of(_apis(money), {"API"}, room):
            console.print(table, width=room)
    for line in _conclusion(money):
        say(console, line)


def _about(money: Mapping[str, Any]) -> Iterator[str]:
    month = money["month"]
    yield f"{money['name']}: {money['gpus']} accelerators, used or not, all month"
    yield f"load: {money['load_factor']:.0%} of the experiment's on average ({money['load_factor_from']})"
    tokens = f"a month: {_tokens(month['input_mtok'])} prompt tokens, {_tokens(month['output_mtok'])} answer tokens"
    if month["energy_kwh"] is not None:
        tokens += f"; {month['energy_kwh']:,.0f} kWh, {month['carbon_kg']:,.0f} kg of carbon dioxide"
    yield tokens


def _schemes(schemes: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    items = list(dict.fromkeys(item for scheme in schemes for item in scheme["items_usd"]))
    rows = [["$ a month", *(scheme["scheme"] for scheme in schemes)]]
    rows.extend([item, *(_usd(scheme["items_usd"].get(item)) for scheme in schemes)] for item in items)
    rows.append(["together", *(_usd(scheme["total_usd"]) for scheme in schemes)])
    for key, title in (
        ("usd_per_mtok_input", "$/Mtok of prompts"),
        ("usd_per_mtok_output", "$/Mtok of answers"),
        ("usd_per_mtok_blended", "$/Mtok of both"),
        ("cost_usd_per_mtok_output", "$/Mtok, all on answers"),
    ):
        rows.append([title, *(number(scheme[key]) for scheme in schemes)])
    return rows


def _utilizations(money: Mapping[str, Any]) -> list[list[str]]:
    points = money["cost_at_utilization"]
    own = money["utilization"]
    titles = [f"{point['utilization']:.0%}{' (yours)' if point['utilization'] == own else ''}" for point in points]
    costs = [number(point["usd_per_mtok_output"]) for point in points]
    return [["share of saturation", *titles], ["$/Mtok, all on answers", *costs]]


def _apis(money: Mapping[str, Any]) -> list[list[str]]:
    years = f"$ in {money['horizon_years']:g} years"
    rows = [["API", "$ a month", "break-even a month", "at +20 %", "at +40 %", years, "own"]]
    for api in money["apis"]:
        points = (api["break_even_mtok"], *api["premium_break_even_mtok"])
        even = [f"{_tokens(mtok)}{'*' if mtok > money['capacity_mtok'] else ''}" for mtok in points]
        rows.append([api["name"], _usd(api["usd"]), *even, _usd(api["horizon_usd"]), _usd(api["horizon_own_usd"])])
    return rows


def _conclusion(money: Mapping[str, Any]) -> Iterator[str]:
    yield f"computed: {money['answer']}"
    if money["apis"]:
        yield f"* more than the {_tokens(money['capacity_mtok'])} tokens a month that these accelerators can serve"
        yield f"published rule, by the API bill ($20,000 and $80,000 a month): {money['published_rule']}"
    if (hybrid := money["hybrid"]) is not None:
        total = f"{_usd(hybrid['total_usd'])} a month with {hybrid['share']:.0%} of the tokens at {hybrid['api']}"
        even = hybrid["break_even_mtok"]
        tail = f"; cheaper than all there from {_tokens(even)} tokens a month" if even else ""
        yield f"hybrid: {total}, {_usd(hybrid['all_at_api_usd'])} with all{tail}"
    for scheme in money["schemes"]:
        yield f"{scheme['scheme']}: {scheme['terms']}"
    for note in money["notes"]:
        yield f"note: {note}"


def _print(console: Console, rows: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for place, heading in enumerate(rows[0]):
        table.add_column(heading, justify="right" if place else "left", no_wrap=True)
    for row in rows[1:]:
        table.add_row(*row, style="bold" if row[0] == "together" else None)
    console.print(table)


def _usd(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _tokens(mtok: float | None) -> str:
    """Print millions of tokens in millions, billions or trillions."""
    if mtok is None or mtok == float("inf"):
        return "never"
    for unit, scale in (("T", 1e6), ("B", 1e3)):
        if mtok >= scale:
            return f"{number(mtok / scale)} {unit}"
    return f"{number(mtok)} M"
