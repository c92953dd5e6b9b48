"""The report as Markdown: what the HTML says, without its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sim.report.pages import Section, answer_of, sections_of

__all__ = ["markdown_of"]


def markdown_of(dossier: Mapping[str, Any]) -> str:
    """Return the report of *dossier*, as `sim.study.dossier` gathers it."""
    answer = answer_of(dossier)
    lines = [f"# {answer.headline}", "", answer.title, "", answer.line, ""]
    lines += [f"- **{value}** {text}" for value, text in answer.figures]
    for section in sections_of(dossier):
        lines += ["", f"## {section.title}", "", *_parts(section)]
    return "\n".join(lines).rstrip() + "\n"


def _parts(section: Section) -> Iterator[str]:
    for sentence in section.sentences:
        yield from (sentence, "")
    if section.table:
        yield from (*_table(section.table), "")
    if section.code:
        yield from ("```yaml", section.code.rstrip(), "```", "")
    yield from (f"- {note}" for note in section.notes)


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    head, *body = rows
    yield _row(head)
    yield _row(["---"] * len(head))
    yield from map(_row, body)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
