"""Printed reports: labels with values, and the arguments that a Python program printed before them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Report", "argument", "labelled", "reports"]

_UNKNOWN = {"none", "null", ""}


class Report(NamedTuple):
    """One of the reports in a text: its title, what was printed since the last one, and what follows."""

    title: re.Match[str]
    before: str
    after: str
    line: int


def reports(title: re.Pattern[str], text: str) -> Iterator[Report]:
    """Yield the reports in *text*, each of which begins where *title* matches."""
    titles, begin, line = list(title.finditer(text)), 0, 1
    ends = [match.start() for match in titles[1:]] + [len(text)]
    for match, end in zip(titles, ends, strict=True):
        line += text.count("\n", begin, match.start())
        yield Report(match, text[begin : match.start()], text[match.end() : end], line)
        begin, line = match.end(), line + match[0].count("\n")


def labelled(text: str) -> dict[str, str]:
    """Return the ``label: value`` lines of *text*; of a label that is there twice the first counts."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        label, colon, value = line.partition(":")
        if colon and label.strip():
            found.setdefault(label.strip(), value.strip())
    return found


def argument(text: str, *names: str) -> str | None:
    """Return the value of an argument in a printed ``Namespace(name='value', ...)`` or ``{'name': value}``.

    It is not evaluated; ``None`` counts as missing.
    """
    for name in names:
        match = re.search(rf"(?<![\w'])'?{name}'?\s*[=:]\s*(?:'([^'\n]*)'|\"([^\"\n]*)\"|([\w.+-]+))", text)
        value = next((group for group in match.groups() if group), "") if match else ""
        if value.casefold() not in _UNKNOWN:
            return value
    return None
