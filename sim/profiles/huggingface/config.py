"""A config.json, read by name and type; what is missing or of the wrong kind is refused with its key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from sim.errors import ProfileError

__all__ = ["Config"]

LARGEST = 10**9
"""No size of a model is larger; a larger number is a mistake."""


class Config:
    """One JSON object of a config, with its place in the file.

    A method that takes several *names* reads the first that is there, since checkpoints name the same thing
    differently. JSON's null counts as missing. Every method raises a `ProfileError` that names file and key.
    """

    def __init__(self, data: dict[str, Any], file: str, path: str = "") -> None:
        self.data, self.file, self.path = data, file, path
        self._read: set[str] = set()

    def fail(self, key: str, message: str) -> NoReturn:
        """Refuse the config because of *key*."""
        raise ProfileError(message, file=self.file, path=f"{self.path}{key}")

    def get(self, *names: str) -> tuple[str, Any]:
        """Return the first of *names* that is there, and its value; else the first name and None."""
        self._read.update(names)
        return next(((name, self.data[name]) for name in names if self.data.get(name) is not None), (names[0], None))

    def has(self, *names: str) -> bool:
        """Say whether any of *names* has a value."""
        return self.get(*names)[1] is not None

    def refuse_unread(self, names: Iterable[str]) -> None:
        """Refuse the config if it has one of *names* and nobody has asked for it."""
        for name in names:
            value = self.data.get(name)
            plain = not value or (isinstance(value, list) and set(map(str, value)) == {"full_attention"})
            if not plain and name not in self._read:
                kind = self.data.get("model_type")
                self.fail(name, f"{_shown(value)} is not what this program knows of {kind}, which it would change")

    def whole(self, *names: str, default: int | None = None, least: int = 1, most: int = LARGEST) -> int:
        """Return a whole number between *least* and *most*."""
        name, value = self.get(*names)
        if value is None:
            if default is None:
                self.fail(name, f"missing, and this architecture ({self.data.get('model_type', '?')}) needs it")
            return default
        return self._whole(name, value, least, most)

    def _whole(self, name: str, value: Any, least: int, most: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            self.fail(name, f"{_shown(value)} is not a whole number")
        if not least <= value <= most:
            self.fail(name, f"{_shown(value)} is not between {least} and {most}")
        return value

    def number(self, name: str, default: float) -> float:
        """Return a positive number."""
        _, value = self.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= LARGEST:
            self.fail(name, f"{_shown(value)} is not a positive number")
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        """Return true or false."""
        _, value = self.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.fail(name, f"{_shown(value)} is neither true nor false")
        return value

    def text(self, name: str, default: str = "") -> str:
        """Return a string."""
        _, value = self.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            self.fail(name, f"{_shown(value)} is not a text")
        return value

    def wholes(self, name: str, length: int, *, least: int = 0) -> list[int] | None:
        """Return the first *length* numbers of a list, or None if *name* is missing; the rest belongs to MTP layers."""
        values = self._list(name, length)
        return None if values is None else [self._whole(name, value, least, LARGEST) for value in values[:length]]

    def texts(self, name: str, length: int, allowed: frozenset[str]) -> list[str] | None:
        """Return at least *length* of the words in *allowed*, or None if *name* is missing."""
        values = self._list(name, length)
        for value in values or ():
            if not isinstance(value, str) or value not in allowed:
                self.fail(name, f"{_shown(value)} is none of {', '.join(sorted(allowed))}")
        return None if values is None else values[:length]

    def indices(self, name: str) -> frozenset[int]:
        """Return a set of layer numbers; empty if *name* is missing."""
        values = self._list(name, 0) or []
        return frozenset(self._whole(name, value, 0, LARGEST) for value in values)

    def entries(self, name: str) -> int:
        """Return how many entries a list has; none if *name* is missing."""
        return len(self._list(name, 0) or [])

    def _list(self, name: str, length: int) -> list[Any] | None:
        _, value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, list):
            self.fail(name, f"{_shown(value)} is not a list")
        if len(value) < length:
            self.fail(name, f"has {len(value)} entries for {length} layers")
        return value

    def part(self, *names: str) -> Config | None:
        """Return a nested object, or None if there is none."""
        name, value = self.get(*names)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.fail(name, f"{_shown(value)} is not an object")
        return Config(value, self.file, f"{self.path}{name}.")

    def parts(self, name: str, length: int) -> Iterator[Config]:
        """Return a list of nested objects."""
        for index, value in enumerate((self._list(name, length) or [])[:length]):
            if not isinstance(value, dict):
                self.fail(f"{name}.{index}", f"{_shown(value)} is not an object")
            yield Config(value, self.file, f"{self.path}{name}.{index}.")


def _shown(value: Any) -> str:
    """Return *value* as it may stand in a one-line message."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**18:
        return f"a number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
