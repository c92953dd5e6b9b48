"""Printed reports: labels with values, and the arguments that a Python program printed before them."""

from __future__ import annotations

import re

__all__ = ["argument", "labelled"]

_LABELLED = re.compile(r"^[ \t]*([^:\n]+?)[ \t]*:[ \t]*(\S.*?)?[ \t]*$", re.MULTILINE)
_UNKNOWN = {"none", "null", ""}


def labelled(text: str) -> dict[str, str]:
    """Return the ``label: value`` lines of *text*; of a label that is there twice the first counts."""
    found: dict[str, str] = {}
    for label, value in _LABELLED.findall(text.replace("\r", "\n")):
        found.setdefault(label, value)
    return found


def argument(text: str, *names: str) -> str | None:
    """Return the value of an argument in a printed ``Namespace(name='value', ...)`` or ``{'name': value}``; it is not evaluated."""
    for name in names:
        match = re.search(rf"(?<![\w'])'?{name}'?\s*[=:]\s*(?:'([^'\n]*)'|\"([^\"\n]*)\"|([\w.+-]+))", text)
        value = next((group for group in match.groups() if group), "") if match else ""
        if value.casefold() not in _UNKNOWN:
            return value
    return None
