"""YAML as nearly every file has it, by libyaml: thirty times as fast as a parser in Python.

That is mappings, lists, text and decimal numbers. Whatever else there is, such as anchors, tags or a mistake, is left
to `sim.yamlfile.thorough`, which knows all of YAML 1.2 and has the words for errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from sim.yamlfile.limits import MAX_DEPTH, MAX_VALUES

try:
    from yaml import (
        DocumentEndEvent,
        DocumentStartEvent,
        Event,
        MappingEndEvent,
        MappingStartEvent,
        ScalarEvent,
        SequenceEndEvent,
        SequenceStartEvent,
        StreamEndEvent,
        StreamStartEvent,
        YAMLError,
    )
    from yaml._yaml import CParser
except ImportError:  # there is no PyYAML, or one that was built without libyaml
    if not TYPE_CHECKING:
        CParser = None

__all__ = ["Lines", "read_quickly"]

_OTHERWISE = re.compile("[\t\x85\u2028\u2029\ufeff]|[|>][-+0-9]*(?:#|.*\n *\r?\n)|^\\.\\.\\.", re.MULTILINE)
"""Of which libyaml, which knows YAML 1.1, thinks otherwise: some characters, ends, and how blocks of text may begin."""
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_FIRST_OF_NUMBER = frozenset("-+.0123456789")
_WHOLE = re.compile(r"[-+]?[0-9]+")
_REAL = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+|\.[0-9]+(?:[eE][-+][0-9]+)?)")
_OTHER_NUMBER = re.compile(r"[-+]?(?:[0-9_]*\.?[0-9_]*(?:[eE][-+]?[0-9]+)?|0[box]\w+|\.\w+)")
"""What may be one as well: with underscores, in another base, infinite."""
_OTHER_WORDS = frozenset(("<<", "="))
_MOST_DIGITS = 307
"""Of a whole number that is surely also a float."""

Lines = dict[tuple[str | int, ...], int]


class _Unread(Exception):  # noqa: N818 - it is no error
    """The document is none of those that are read here."""


def read_quickly(text: str) -> tuple[dict[str, Any], Lines] | None:
    """Return the mapping that *text* holds and the line of each value, from 1; None for what is not read here."""
    if CParser is None or _OTHERWISE.search(text):
        return None
    try:
        return _Quick(text).document()
    except (YAMLError, UnicodeError, _Unread):
        return None


class _Quick:
    """Makes plain data of libyaml's events, and notes the line of each value."""

    def __init__(self, text: str) -> None:
        self.next: Callable[[], Any] = CParser(text).get_event
        self.begins = frozenset((ScalarEvent, MappingStartEvent, SequenceStartEvent))
        self.lines: Lines = {}
        self.values = 0

    def document(self) -> tuple[dict[str, Any], Lines]:
        """Return the mapping that is all there is."""
        self._expect(StreamStartEvent)
        start = self._expect(DocumentStartEvent)
        if start.version or start.tags:
            raise _Unread
        data = self._value(self._expect(MappingStartEvent), ())
        self._expect(DocumentEndEvent)
        self._expect(StreamEndEvent)
        return data, self.lines

    def _expect(self, kind: type[Event]) -> Any:
        event = self.next()
        if type(event) is not kind:
            raise _Unread
        return event

    def _value(self, event: Any, path: tuple[str | int, ...]) -> Any:
        """Return the value that begins with *event*."""
        self.values += 1
        kind = type(event)
        if kind not in self.begins or event.anchor or event.tag or self.values > MAX_VALUES or len(path) > MAX_DEPTH:
            raise _Unread
        if kind is ScalarEvent:
            return _plain(event.value) if event.implicit[0] else event.value
        return dict(self._pairs(path)) if kind is MappingStartEvent else list(self._items(path))

    def _pairs(self, path: tuple[str | int, ...]) -> Iterator[tuple[str, Any]]:
        while type(key := self.next()) is not MappingEndEvent:
            if type(key) is not ScalarEvent or key.anchor or key.tag or (*path, key.value) in self.lines:
                raise _Unread
            here = (*path, key.value)
            self._note(key, here)
            yield key.value, self._value(self.next(), here)

    def _items(self, path: tuple[str | int, ...]) -> Iterator[Any]:
        for index, item in enumerate(iter(self.next, None)):
            if type(item) is SequenceEndEvent:
                return
            here = (*path, index)
            if type(item) is MappingStartEvent and _is_bare(item):
                raise _Unread
            self._note(item, here)
            yield self._value(item, here)

    def _note(self, event: Any, path: tuple[str | int, ...]) -> None:
        self.lines[path] = event.start_mark.line + 1


def _is_bare(mapping: Any) -> bool:
    """Tell whether *mapping*, an item of a list in brackets, is a pair without braces."""
    return bool(mapping.flow_style) and mapping.start_mark.column == mapping.end_mark.column


def _plain(text: str) -> Any:
    """Return the value of *text* that stands without quotes."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _FIRST_OF_NUMBER:
        if text in _OTHER_WORDS:
            raise _Unread
        return text
    if _WHOLE.fullmatch(text) and len(text) <= _MOST_DIGITS:
        return int(text)
    if _REAL.fullmatch(text):
        return float(text)
    if _OTHER_NUMBER.fullmatch(text):
        raise _Unread
    return text
