"""What had to be assumed of many runs, in one line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

__all__ = ["assumed_in_short"]

_NUMBER = re.compile(r"\d+(?:\.\d+)*")


def assumed_in_short(assumed: Sequence[Iterable[str]], of: str = "runs") -> str:
    """Return what was *assumed* of each run as one text: each thing once, and in how many runs where there are several.

    Texts that differ in numbers alone are one thing: whole numbers become ranges, versions are listed.
    """
    if len(assumed) == 1:
        return "; ".join(dict.fromkeys(assumed[0]))
    groups: dict[str, list[str]] = {}
    for texts in assumed:
        for text in dict.fromkeys(texts):
            groups.setdefault(_NUMBER.sub("#", text), []).append(text)
    found = sorted(groups.values(), key=len, reverse=True)
    counted = [f"{_alike(texts)} in {len(texts)} of {len(assumed)}" for texts in found]
    return "; ".join([f"{counted[0]} {of}", *counted[1:]]) if counted else ""


def _alike(texts: Sequence[str]) -> str:
    """Return one text for *texts*, which differ in numbers alone."""
    columns = zip(*(_NUMBER.findall(text) for text in texts), strict=True)
    numbers = (_range(sorted(set(column), key=_parts)) for column in columns)
    return _NUMBER.sub(lambda _: next(numbers), texts[0])


def _range(numbers: Sequence[str]) -> str:
    if len(numbers) == 1:
        return numbers[0]
    return " or ".join(numbers) if "." in "".join(numbers) else f"{numbers[0]} to {numbers[-1]}"


def _parts(number: str) -> list[int]:
    return [int(part) for part in number.split(".")]
