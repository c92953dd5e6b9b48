"""The report as sections of headings, sentences, tables and figures, from which HTML and Markdown are made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sim.report import figures
from sim.report.figures import clause_words
from sim.report.table import number
from sim.units import format_seconds

__all__ = ["Answer", "Figure", "Section", "answer_of", "sections_of"]

Plain = Mapping[str, Any]

_DROPPED = 2
"""Deployments of each accelerator that were left out and are shown: the page has to stay short."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a reader must find at first sight: a headline, and figures with their captions."""

    title: str
    headline: str
    line: str
    figures: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart as plotly takes it, with what it shows."""

    caption: str
    plot: Plain


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with what is under it."""

    title: str
    sentences: tuple[str, ...] = ()
    table: Sequence[Sequence[str]] = ()
    figures: tuple[Figure, ...] = ()
    code: str = ""
    notes: tuple[str, ...] = field(default=())


def answer_of(dossier: Plain) -> Answer:
    """Return the answer of *dossier*, as `sim.study.dossier` gathers it."""
    answer, best = dossier["answer"], dossier["answer"]["recommended"]
    load = f"{answer['load']:,.4g} {answer['load_words']}"
    if answer["peak"] != answer["load"]:
        load += f", {answer['peak']:,.4g} at the peak"
    replicas = "1 replica" if best["replicas"] == 1 else f"{best['replicas']} replicas"
    spare = f" and {best['spare']} spare" if best["spare"] else ""
    low, high = best["gpus_interval"]
    bounds = answer["slo_ms"].items()
    slo = " and ".join(f"{clause_words(name)} {format_seconds(value / 1e3)}" for name, value in bounds)
    cost = "no price known" if best["usd_per_month"] is None else f"${best['usd_per_month']:,.0f}"
    per_mtok = "-" if best["usd_per_mtok"] is None else f"${best['usd_per_mtok']:.2f}"
    return Answer(
        title=f"{answer['model']} for {load}",
        headline=f"Take {best['gpus']} x {best['gpu']}",
        line=f"{replicas}{spare} of {best['label']}, which keep {slo}",
        figures=(
            (f"{answer['confidence']:.0%} sure", f"90 % interval {low} to {'more' if high is None else high} GPUs"),
            (cost, f"a month of rent{_with_staff(dossier['money'])}; {best['price']}"),
            (per_mtok, "a million output tokens: rent alone, with the mean load day and night"),
            ("-" if best["kw"] is None else f"{best['kw']:.1f} kW", "with servers and cooling at the peak"),
            (clause_words(best["objective"]), f"is the first to break; limited by {best['peak']['binding_sentence']}"),
        ),
    )


def _with_staff(money: Plain) -> str:
    rent = [scheme["total_usd"] for scheme in money["schemes"] if scheme["scheme"] == "rent"]
    return f", ${rent[0]:,.0f} with staff and network" if rent else ""


def sections_of(dossier: Plain) -> Iterator[Section]:
    """Yield the sections of the report in their order."""
    answer = dossier["answer"]
    yield _alternatives(answer)
    yield _charts(dossier)
    yield _money(dossier["money"])
    yield _dropped(answer)
    yield _assumptions(dossier)
    yield Section("Run it again", ("python -m sim run FILE.yaml",), code=dossier["yaml"])


def _alternatives(answer: Plain) -> Section:
    clauses = list(answer["slo_ms"])
    heading = ["accelerator", "GPUs", "90 %", "deployment", "rent [$/month]", "rent [$/Mtok]", "kW"]
    rows = [[*heading, *(f"{clause_words(clause)} [ms]" for clause in clauses), "limited by", "why"]]
    for each in answer["alternatives"]:
        low, high = each["gpus_interval"]
        peak = each["peak"]
        rows.append(
            [
                each["gpu"],
                str(each["gpus"]),
                f"{low}-{'more' if high is None else high}",
                f"{each['replicas']} x {each['label']}",
                "-" if each["usd_per_month"] is None else f"{each['usd_per_month']:,.0f}",
                "-" if each["usd_per_mtok"] is None else f"{each['usd_per_mtok']:.2f}",
                "-" if each["kw"] is None else f"{each['kw']:.1f}",
                *(_interval(peak, clause) for clause in clauses),
                peak["binding_limit"],
                each["why"],
            ]
        )
    notes = [f"{each['gpu']}: {each['price']}" for each in answer["alternatives"]]
    notes += [f"{gpu}: none keeps the objectives; closest: {reason}" for gpu, reason in answer["unable"].items()]
    if answer["caution"]:
        notes.append(answer["caution"])
    return Section("Alternatives", table=rows, notes=tuple(notes))


def _interval(run: Plain, clause: str) -> str:
    low, high = run["slo_intervals_ms"][clause]
    return f"{run['slo_values_ms'][clause]:,.0f} ({low:,.0f}-{high:,.0f})"


def _charts(dossier: Plain) -> Section:
    bounds = dossier["answer"]["slo_ms"]
    objective = dossier["answer"]["recommended"]["objective"]
    drawn = [
        Figure("Latency against load: bands hold 90 %, dashes bound", figures.load_curve(dossier["curve"], bounds)),
        Figure("Speed for a user against throughput, one replica each", figures.frontier(dossier["frontier"])),
        Figure("Memory of one accelerator", figures.memory_bars(dossier["memory"])),
        Figure(
            f"What moves {clause_words(objective)} at the peak",
            figures.sensitivity_bars(dossier["sensitivity"], objective, bounds[objective]),
        ),
    ]
    return Section("Behaviour", figures=tuple(drawn), table=_curve_table(dossier["curve"], list(bounds)))


def _curve_table(curve: Plain, clauses: Sequence[str]) -> list[list[str]]:
    rows = [["load", *(f"{clause_words(clause)} [ms]" for clause in clauses), "output tok/s"]]
    for point in curve["points"]:
        values = [number(point["values_ms"][clause]) for clause in clauses]
        mark = " (planned peak)" if point["load"] == curve["peak"] else ""
        rows.append([f"{point['load']:,.4g}{mark}", *values, number(point["tok_s"])])
    return rows


def _money(money: Plain) -> Section:
    items = list(dict.fromkeys(item for scheme in money["schemes"] for item in scheme["items_usd"]))
    rows = [["$ a month", *(scheme["scheme"] for scheme in money["schemes"])]]
    rows.extend([item, *(_usd(scheme["items_usd"].get(item)) for scheme in money["schemes"])] for item in items)
    rows.append(["together", *(_usd(scheme["total_usd"]) for scheme in money["schemes"])])
    unit = f"$/Mtok of answers, all of this at {money['load_factor']:.0%} of the peak load"
    rows.append([unit, *(number(scheme["cost_usd_per_mtok_output"]) for scheme in money["schemes"])])
    sentences = [f"Computed: {money['answer']}."]
    if money["published_rule"]:
        sentences.append(f"Published rule by the API bill ($20,000, $80,000 a month): {money['published_rule']}.")
    even = [f"{api['name']} {_mtok(api['break_even_mtok'])}" for api in money["apis"]]
    if even:
        sentences.append(f"Break-even in tokens a month: {'; '.join(even)}.")
    points = money["cost_at_utilization"]
    trap = ", ".join(f"${number(point['usd_per_mtok_output'])} at {point['utilization']:.0%}" for point in points)
    sentences.append(f"A million output tokens by the share of saturation: {trap}.")
    month = money["month"]
    if month["energy_kwh"] is not None:
        sentences.append(f"{month['energy_kwh']:,.0f} kWh and {month['carbon_kg']:,.0f} kg of carbon dioxide a month.")
    notes = (*(f"{scheme['scheme']}: {scheme['terms']}" for scheme in money["schemes"]), *money["notes"])
    return Section("Money", tuple(sentences), rows, notes=notes)


def _dropped(answer: Plain) -> Section:
    counts = ", ".join(f"{count} {stage}" for stage, count in answer["dropped_by_stage"].items())
    rows = [["accelerator", "deployment", "reason"]]
    for gpu in dict.fromkeys(each["gpu"] for each in answer["dropped"]):
        own = [each for each in answer["dropped"] if each["gpu"] == gpu]
        rows.extend([gpu, each["label"], each["reason"]] for each in own[:_DROPPED])
    said = f"{len(answer['dropped'])} other deployments: {counts}. Some of them:"
    return Section("Left out", (said,), rows)


def _assumptions(dossier: Plain) -> Section:
    rows = [["assumption", "value", "source"]]
    rows.extend([each["what"], each["value"], each["source"]] for each in dossier["assumptions"])
    return Section("Assumptions, and what was not modelled", table=rows, notes=tuple(dossier["not_modelled"]))


def _usd(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _mtok(mtok: float) -> str:
    return "never" if mtok == float("inf") else f"{mtok / 1e3:,.3g} B" if mtok >= 1e3 else f"{mtok:,.3g} M"
