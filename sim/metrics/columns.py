"""Columns of rows that are kept narrow, or in pieces, and read wide."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

__all__ = ["Column", "Real", "Texts", "Whole", "kept", "narrow", "pieces"]

S = TypeVar("S", bound=np.generic)


class Column(Generic[S]):
    """A field of a dataclass that takes an array, or a list of its pieces, of any type, and returns one of *kind*.

    What is kept narrow is widened whenever it is asked for, and nobody keeps that.
    """

    def __init__(self, kind: type[S]) -> None:
        self._kind = kind

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = f"_{name}"

    def __set__(self, rows: Any, column: NDArray[Any] | list[NDArray[Any]]) -> None:
        rows.__dict__[self._name] = column

    def __get__(self, rows: Any, owner: type | None = None) -> NDArray[S]:
        if rows is None:
            raise AttributeError(self._name)  # a dataclass asks its class for a default, of which there is none
        found = rows.__dict__[self._name]
        if isinstance(found, list):
            return np.concatenate(found, dtype=self._kind)
        wide: NDArray[S] = found.astype(self._kind, copy=False)
        return wide


class Real(Column[np.float64]):
    """A column of times or other real numbers."""

    def __init__(self) -> None:
        super().__init__(np.float64)


class Whole(Column[np.int64]):
    """A column of whole numbers."""

    def __init__(self) -> None:
        super().__init__(np.int64)


def kept(rows: Any, name: str) -> NDArray[Any]:
    """Return the `Column` *name* of *rows* as narrow as it is kept."""
    found = rows.__dict__[f"_{name}"]
    return np.concatenate(found) if isinstance(found, list) else found


def pieces(rows: Any, name: str) -> list[NDArray[Any]]:
    """Return the pieces in which the `Column` *name* of *rows* is kept."""
    found = rows.__dict__[f"_{name}"]
    return found if isinstance(found, list) else [found]


def narrow(column: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers from 0 on in as few bytes as hold them, anything else as it is."""
    if column.dtype.kind != "i" or not len(column):
        return column.copy()
    return column.astype(np.min_scalar_type(column.max()))


@dataclass(frozen=True)
class Texts(Sequence[str]):
    """A text for each of so many *rows*: the *known* ones, and what *usual* makes of the place of any other."""

    rows: int
    usual: Callable[[int], str]
    known: Mapping[int, str]

    def __len__(self) -> int:
        return self.rows

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(self.rows))]
        place = range(self.rows)[index]
        return self.known.get(place) or self.usual(place)

    def __iter__(self) -> Iterator[str]:
        usual = map(self.usual, range(self.rows))
        if not self.known:
            return usual
        return (self.known.get(place) or text for place, text in enumerate(usual))
