"""A mapping from outside, read value by value with its place in every complaint."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.errors import TraceError

__all__ = ["Record", "plain_number"]

_NOTHING = {"", "-", "n/a", "na", "nan", "none", "null"}
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?")
_TOO_LARGE = 1e30  # no count, rate or time of a benchmark comes near, and squares of it stay finite
_LONGEST_TEXT = 500
_DAY = re.compile(r"(20\d\d)[-/]?(0[1-9]|1[0-2])[-/]?([0-2]\d|3[01])(?!\d)")
_EPOCH = re.compile(r"1\d{9}")


@dataclass(frozen=True, slots=True)
class Record:
    """One JSON or YAML object, or one row of a table.

    Every reader takes several keys and uses the first that holds a value, since tools rename theirs; it returns None
    if none does, and raises a `TraceError` with file, line and path for a value of another type.
    """

    data: Mapping[str, Any]
    file: str
    line: int | None = None
    path: str = ""

    def __contains__(self, key: str) -> bool:
        return key in self.data

    def has(self, *keys: str) -> bool:
        """Tell whether all *keys* are there."""
        return all(key in self.data for key in keys)

    def number(self, *keys: str, infinite: bool = False) -> float | None:
        """Return a number that is not negative; ``nan``, ``N/A`` and empty cells are None."""
        key, value = self._first(keys)
        if value is None:
            return None
        number = self._parsed(key, value)
        if math.isnan(number):
            return None
        if number < 0 or not (number < _TOO_LARGE or (infinite and number == math.inf)):
            raise self.error(key, f"{_shown(value)} is out of range")
        return number

    def whole(self, *keys: str) -> int | None:
        """Return a whole number that is not negative."""
        number = self.number(*keys)
        if number is not None and not number.is_integer():
            raise self.error(self._first(keys)[0], f"expected a whole number, got {number:g}")
        return None if number is None else int(number)

    def text(self, *keys: str) -> str | None:
        """Return a text on one line; a number counts as its text."""
        key, value = self._first(keys)
        if value is None:
            return None
        if not isinstance(value, str | int | float):
            raise self.error(key, f"expected a text, got {_shown(value)}")
        return " ".join(str(value).split())[:_LONGEST_TEXT]

    def date(self, *keys: str) -> str | None:
        """Return a day such as ``2025-06-10`` where a text begins with one or is seconds since 1970, else the text."""
        text = self.text(*keys)
        if text is None:
            return None
        if _EPOCH.fullmatch(text):
            return datetime.fromtimestamp(int(text), UTC).date().isoformat()
        day = _DAY.match(text)
        return "-".join(day.groups()) if day else text

    def flag(self, *keys: str) -> bool | None:
        """Return yes or no."""
        key, value = self._first(keys)
        if value is None:
            return None
        truth = _TRUTH.get(str(value).casefold())
        if truth is None:
            raise self.error(key, f"expected true or false, got {_shown(value)}")
        return truth

    def numbers(self, fields: Mapping[str, str]) -> dict[str, Any]:
        """Return the number of each field, which *fields* maps to its key."""
        return {field: self.number(key) for field, key in fields.items()}

    def wholes(self, fields: Mapping[str, str]) -> dict[str, Any]:
        """Return the whole number of each field, which *fields* maps to its key."""
        return {field: self.whole(key) for field, key in fields.items()}

    def texts(self, fields: Mapping[str, str]) -> dict[str, Any]:
        """Return the text of each field, which *fields* maps to its key."""
        return {field: self.text(key) for field, key in fields.items()}

    def child(self, *keys: str) -> Record:
        """Return the object below the first of *keys*; an empty one if there is none."""
        key, value = self._first(keys)
        if value is None:
            return Record({}, self.file, self.line, self._below(key))
        if not isinstance(value, Mapping):
            raise self.error(key, f"expected keys and values, got {_shown(value)}")
        return Record(value, self.file, self.line, self._below(key))

    def children(self, key: str) -> Iterator[Record]:
        """Yield the objects of a list."""
        for index, item in enumerate(self._list(key) or ()):
            yield Record({"": item}, self.file, self.line, self._below(key)).child("").at(f"{self._below(key)}.{index}")

    def at(self, path: str) -> Record:
        """Return the same record with another place."""
        return Record(self.data, self.file, self.line, path)

    def array(self, key: str) -> NDArray[np.float64] | None:
        """Return a list of numbers as an array; ``null`` becomes `nan`."""
        items = self._list(key)
        return None if items is None else self._numbers(key, items)

    def arrays(self, key: str) -> tuple[NDArray[np.float64], ...] | None:
        """Return a list of lists of numbers."""
        items = self._list(key)
        if items is None:
            return None
        if not all(isinstance(item, list) for item in items):
            raise self.error(key, "expected a list of lists of numbers")
        return tuple(self._numbers(key, item) for item in items)

    def error(self, key: str, message: str) -> TraceError:
        """Return a complaint about the value of *key*."""
        return TraceError(message, file=self.file, line=self.line, path=self._below(key) or None)

    def _first(self, keys: tuple[str, ...]) -> tuple[str, Any]:
        """Return the first of *keys* that holds a value, and that value."""
        for key in keys:
            value = self.data.get(key)
            if value is not None and not (isinstance(value, str) and value.strip().casefold() in _NOTHING):
                return key, value
        return keys[0], None

    def _below(self, key: str) -> str:
        return ".".join(part for part in (self.path, key) if part)

    def _list(self, key: str) -> list[Any] | None:
        value = self.data.get(key)
        if value is not None and not isinstance(value, list):
            raise self.error(key, f"expected a list, got {_shown(value)}")
        return value

    def _parsed(self, key: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise self.error(key, f"expected a number, got {_shown(value)}")
        try:
            return float(plain_number(value) if isinstance(value, str) else value)
        except (ValueError, OverflowError):
            raise self.error(key, f"expected a number, got {_shown(value)}") from None

    def _numbers(self, key: str, items: list[Any]) -> NDArray[np.float64]:
        if any(isinstance(item, bool) or not isinstance(item, int | float | None) for item in items):
            raise self.error(key, "expected a list of numbers")
        try:
            numbers = np.array([math.nan if item is None else item for item in items], dtype=np.float64)
        except OverflowError:
            raise self.error(key, "a number is out of range") from None
        if (numbers < 0).any() or (numbers >= _TOO_LARGE).any():
            raise self.error(key, "a number is out of range")
        return numbers


def plain_number(number: str) -> str:
    """Return *number* without commas between its thousands; one where a decimal point belongs stays, and is refused."""
    return number.replace(",", "") if _THOUSANDS.fullmatch(number.strip()) else number


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return "keys and values"
    if isinstance(value, list):
        return "a list"
    text = repr(value) if not isinstance(value, int) or abs(value) < 10**30 else "a very large number"
    return text if len(text) <= 60 else f"{text[:57]}..."
