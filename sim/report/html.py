"""The report as one HTML file without any request to elsewhere, light and dark, for the screen and for A4."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from sim.report.pages import Answer, Figure, Section, answer_of, sections_of

__all__ = ["html_of"]

_STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --dim: #666; --line: #ccc; --paper: #fff; --card: #f4f6f8;
  --mark: #0072B2; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e8; --dim: #a0a0a0; --line: #444; --paper: #16181b; --card: #22262b; --mark: #56B4E9; }
}
@media print {
  :root { --ink: #000; --dim: #444; --line: #bbb; --paper: #fff; --card: #f4f6f8; --mark: #0072B2; }
  .drawn { display: none; } section { break-inside: auto; }
  tr, figure, .answer { break-inside: avoid; } h2 { break-after: avoid; }
}
@page { size: A4; margin: 10mm; }
* { box-sizing: border-box; }
body { font: 12px/1.4 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
  max-width: 740px; padding: 10px; }
h1 { font-size: 13px; font-weight: 500; color: var(--dim); margin: 0 0 4px; }
h2 { font-size: 13px; margin: 12px 0 4px; border-bottom: 1px solid var(--line); }
.answer b { font-size: 28px; color: var(--mark); display: block; line-height: 1.2; }
.cards { display: grid; grid-template-columns: repeat(5, 1fr); gap: 6px; margin: 8px 0; }
.cards div { background: var(--card); padding: 6px; border-radius: 4px; font-size: 10px; color: var(--dim); }
.cards strong { display: block; font-size: 16px; color: var(--ink); }
table { border-collapse: collapse; width: 100%; font-size: 10px; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 2px 6px 2px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; white-space: nowrap; }
.figures { display: flex; flex-wrap: wrap; gap: 4px 8px; }
figure { margin: 0; width: 352px; } figcaption { font-size: 10px; color: var(--dim); }
pre { font-size: 9px; line-height: 1.25; background: var(--card); padding: 6px; white-space: pre-wrap; margin: 4px 0;
  columns: 2; }
p, ul { margin: 3px 0; } ul { padding-left: 16px; color: var(--dim); font-size: 10px; }
"""
_NUMERIC = set("0123456789.,-$%+ ()")


def html_of(dossier: Mapping[str, Any]) -> str:
    """Return the page of *dossier*, as `sim.study.dossier` gathers it."""
    from plotly.offline import get_plotlyjs

    answer, sections = answer_of(dossier), list(sections_of(dossier))
    body = [_hero(answer), *(_section(section) for section in sections)]
    plots = [figure.plot for section in sections for figure in section.figures]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n<link rel="icon" href="data:,">\n'
        f"<title>{escape(answer.headline)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + f"\n<script>{get_plotlyjs()}</script>\n<script>{_drawing(plots)}</script>\n</body>\n</html>\n"
    )


def _hero(answer: Answer) -> str:
    cards = "".join(f"<div><strong>{escape(value)}</strong>{escape(text)}</div>" for value, text in answer.figures)
    return (
        f'<div class="answer"><h1>{escape(answer.title)}</h1><b>{escape(answer.headline)}</b>{escape(answer.line)}'
        f'<div class="cards">{cards}</div></div>'
    )


def _section(section: Section) -> str:
    return "\n".join((f"<section><h2>{escape(section.title)}</h2>", *_parts(section), "</section>"))


def _parts(section: Section) -> Iterator[str]:
    yield from (f"<p>{escape(sentence)}</p>" for sentence in section.sentences)
    if section.figures:
        yield f'<div class="figures">{"".join(map(_figure, section.figures))}</div>'
    if section.table:
        yield f'<div class="drawn">{_table(section.table)}</div>' if section.figures else _table(section.table)
    if section.code:
        yield f"<pre>{escape(section.code)}</pre>"
    if section.notes:
        yield f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in section.notes)}</ul>"


def _figure(figure: Figure) -> str:
    return f'<figure><figcaption>{escape(figure.caption)}</figcaption><div class="plot"></div></figure>'


def _table(rows: Sequence[Sequence[str]]) -> str:
    numeric = [all(set(row[place]) <= _NUMERIC for row in rows[1:]) for place in range(len(rows[0]))]
    head = _row("th", rows[0], numeric)
    return f"<table><thead>{head}</thead><tbody>{''.join(_row('td', row, numeric) for row in rows[1:])}</tbody></table>"


def _row(tag: str, cells: Iterable[str], numeric: Sequence[bool]) -> str:
    marks = (' class="n"' if right else "" for right in numeric)
    written = (f"<{tag}{mark}>{escape(cell)}</{tag}>" for cell, mark in zip(cells, marks, strict=True))
    return f"<tr>{''.join(written)}</tr>"


def _drawing(plots: Sequence[Mapping[str, Any]]) -> str:
    data = json.dumps(plots).replace("</", "<\\/")
    return (
        f"const plots = {data};\n"
        'document.querySelectorAll(".plot").forEach((place, index) => {\n'
        "  Plotly.newPlot(place, plots[index].data, plots[index].layout, {displayModeBar: false});\n"
        "});\n"
    )
