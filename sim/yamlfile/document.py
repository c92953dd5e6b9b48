"""A YAML mapping as plain data, with the file and line of every value.

YAML 1.2, so ``on`` and ``yes`` are text, ``3.35e12`` is a number, and a key keeps its spelling (``0.10``).
Nothing in a file is executed: tags other than the core ones are refused.
"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

from sim.errors import ConfigError, UserError, did_you_mean

__all__ = ["Document", "PathTuple", "parse_yaml", "read_yaml", "shown"]

MAX_BYTES = 2**20
"""Largest file that is read; experiments and profiles are a few kB, and a hostile file must fail fast."""
MAX_VALUES = 100_000
"""Most values after aliases are expanded: stops the "billion laughs"."""
MAX_DEPTH = 50
_MOST_BITS = 1023  # of a whole number that is also a float

_HALVES = re.compile("[\ud800-\udfff]")
_TAG = "tag:yaml.org,2002:"
_CORE_TAGS = {_TAG + name for name in ("null", "bool", "int", "float", "str", "map", "seq", "merge", "timestamp")}

PathTuple = tuple[str | int, ...]
Place = tuple[str, int | None]


@dataclasses.dataclass(frozen=True, slots=True)
class Document:
    """A YAML mapping as plain Python data that knows where each value stands.

    Parameters
    ----------
    data
        Mappings with text keys, lists, text, numbers, booleans and None.
    file
        Name of the file, as error messages print it.
    error_class
        The `UserError` that this document's problems raise.
    places
        File (or ``--set``) and line, by path.
    """

    data: dict[str, Any]
    file: str
    error_class: type[UserError]
    places: dict[PathTuple, Place]

    def place_of(self, path: PathTuple) -> Place:
        """Return the file and line of the value at *path*, or of its nearest ancestor that is there."""
        while path not in self.places and path:
            path = path[:-1]
        return self.places.get(path, (self.file, None))

    def line_of(self, path: PathTuple) -> int | None:
        """Return the line of *path* from 1; None where a ``--set`` wrote it."""
        return self.place_of(path)[1]

    def value_at(self, path: PathTuple, default: Any) -> Any:
        """Return what is written at *path*, or *default* if nothing is."""
        value: Any = self.data
        for step in path:
            try:
                value = value[step]
            except (LookupError, TypeError):
                return default
        return value

    def error(self, path: PathTuple, message: str) -> UserError:
        """Return (not raise) the error of this document that points at *path*."""
        file, line = self.place_of(path)
        dotted = " ".join(".".join(map(str, path)).split())
        return self.error_class(message, file=file, line=line, path=None if file == _setting(dotted) else dotted)

    def override(self, assignment: str) -> Document:
        """Return a copy with ``a.b.c=value`` applied, the value read as YAML; missing mappings are made."""
        dotted, equals, text = assignment.partition("=")
        if not equals or not all(dotted.strip().split(".")):
            raise self.error_class(f"{assignment!r} is no assignment: write key.path=value", file="--set")
        dotted = dotted.strip()
        origin = _setting(dotted)
        written = f"{json.dumps(dotted)}:\n {text.strip()}"
        value = parse_yaml(written, origin, self.error_class, numbered=False).data[dotted]
        return self.replace(dotted, value, origin)

    def replace(self, dotted: str, value: Any, origin: str, line: int | None = None) -> Document:
        """Return a copy with *value* at the *dotted* path; errors there name *origin* and its *line*, if it has one.

        So do errors of the mappings above it that it makes.
        """
        data, path = self._with(self.data, (), dotted.split("."), value)
        below = len(path)
        places = {at: place for at, place in self.places.items() if at[:below] != path}
        above = [path[:length] for length in range(1, below)]
        made = [at for at in above if at not in places and self.value_at(at, None) is None]
        return dataclasses.replace(self, data=data, places=places | dict.fromkeys([*made, path], (origin, line)))

    def graft(self, source: PathTuple, target: str) -> Document:
        """Return a copy in which what stands at *source* stands at the dotted *target*; its lines stay its own."""
        grafted = self.replace(target, self.value_at(source, None), self.file)
        path, below = tuple(target.split(".")), len(source)
        moved = {(*path, *at[below:]): place for at, place in self.places.items() if at[:below] == source}
        return dataclasses.replace(grafted, places=grafted.places | moved)

    def without(self, key: str) -> Document:
        """Return a copy without the *key* of its top level."""
        return dataclasses.replace(self, data={name: value for name, value in self.data.items() if name != key})

    def _with(self, data: Any, path: PathTuple, steps: list[str], value: Any) -> tuple[Any, PathTuple]:
        if not steps:
            return value, path
        step, *rest = steps
        if isinstance(data, list):
            if not step.isdecimal() or int(step) >= len(data):
                raise self.error(path, f"no item {step!r} in a list of {len(data)}")
            index = int(step)
            item, full = self._with(data[index], (*path, index), rest, value)
            return [*data[:index], item, *data[index + 1 :]], full
        if not isinstance(data, dict | None):
            raise self.error(path, f"cannot set {step!r} inside of {shown(data)}")
        item, full = self._with((data or {}).get(step), (*path, step), rest, value)
        return {**(data or {}), step: item}, full


def read_yaml(path: str | Path, error_class: type[UserError] = ConfigError) -> Document:
    """Read a file that holds one YAML mapping; every way to fail raises *error_class* in one line."""
    path = Path(path)
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        near = did_you_mean(path.name, (file.name for file in path.parent.glob("*.y*ml")))
        raise error_class(f"no such file{near}", file=str(path)) from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise error_class(f"cannot be read: {reason}", file=str(path)) from None
    if len(content) > MAX_BYTES:
        raise error_class(f"is larger than {MAX_BYTES >> 20} MiB: no experiment or profile", file=str(path))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        raise error_class("is not UTF-8 text", file=str(path), line=line) from None
    return parse_yaml(text, str(path), error_class)


def parse_yaml(text: str, file: str, error_class: type[UserError] = ConfigError, *, numbered: bool = True) -> Document:
    """Read *text* that holds one YAML mapping; *file* and, if *numbered*, lines appear in error messages."""
    yaml = YAML(typ="safe", pure=True)
    document = Document({}, file, error_class, {(): (file, 1 if numbered else None)})
    try:
        root = yaml.compose(text)
    except RecursionError:
        raise error_class(f"is nested deeper than {MAX_DEPTH} levels", file=file) from None
    except YAMLError as problem:
        mark = problem.problem_mark if isinstance(problem, MarkedYAMLError) else None
        line = mark.line + 1 if mark and numbered else None
        raise error_class(_syntax(problem), file=file, line=line) from None
    if root is None:
        raise error_class("is empty", file=file)
    data = _Plain(yaml, document, numbered).of(root, ())
    if not isinstance(data, dict):
        raise document.error((), f"expected keys and values, got {shown(data)}")
    return dataclasses.replace(document, data=data)


def _syntax(problem: YAMLError) -> str:
    if not isinstance(problem, MarkedYAMLError):
        return f"is not YAML: {str(problem).splitlines()[0]}"
    if r"'\t'" in str(problem.problem):
        return "a tab where YAML allows only spaces"
    context = f"{problem.context}, " if problem.context else ""
    return f"is not YAML: {context}{problem.problem}"


class _Plain:
    """Turns a tree of YAML nodes into plain data and notes each value's line in the document's places."""

    def __init__(self, yaml: YAML, document: Document, numbered: bool) -> None:
        self.yaml, self.document, self.numbered, self.values = yaml, document, numbered, 0

    def of(self, node: Node, path: PathTuple) -> Any:
        self.values += 1
        if self.values > MAX_VALUES:
            raise self.document.error((), f"holds more than {MAX_VALUES:,} values, aliases expanded")
        if len(path) > MAX_DEPTH:
            raise self.document.error((), f"is nested deeper than {MAX_DEPTH} levels")
        if node.tag not in _CORE_TAGS:
            tag = str(node.tag).replace(_TAG, "!!")
            raise self.document.error(path, f"the tag {tag!r} is not allowed")
        if isinstance(node, ScalarNode):
            return self._scalar(node, path)
        if isinstance(node, MappingNode):
            return self._mapping(node, path)
        return [self._item(item, item, (*path, index)) for index, item in enumerate(node.value)]

    def _item(self, marked: Node, node: Node, path: PathTuple) -> Any:
        self._note(marked, path)
        return self.of(node, path)

    def _note(self, marked: Node, path: PathTuple) -> None:
        line = marked.start_mark.line + 1 if self.numbered else None
        self.document.places[path] = (self.document.file, line)

    def _mapping(self, node: MappingNode, path: PathTuple) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                raise self.document.error(path, "a key must be a single word or number")
            name = self._characters(key.value, path)
            here = (*path, name)
            if name in data:
                first = self.document.line_of(here)
                self._note(key, here)
                raise self.document.error(here, f"key {name!r} is there twice, first in line {first}")
            data[name] = self._item(key, value, here)
        return data

    def _scalar(self, node: ScalarNode, path: PathTuple) -> Any:
        if node.tag == _TAG + "timestamp":  # a date stays text: nothing here reads dates
            return node.value
        try:
            value = self.yaml.constructor.construct_object(node)
        except (ValueError, YAMLError):
            raise self.document.error(path, f"cannot read {node.value[:40]!r}") from None
        if isinstance(value, int) and value.bit_length() > _MOST_BITS:
            raise self.document.error(path, f"{node.value[:20]}... is too large a number")
        return self._characters(value, path) if isinstance(value, str) else value

    def _characters(self, text: str, path: PathTuple) -> str:
        """Return *text* with characters that JSON escapes as two halves made whole; refuse half a character."""
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16") if _HALVES.search(text) else text
        except UnicodeDecodeError:
            raise self.document.error(path, f"half a character in {text[:40]!a}") from None


def shown(value: Any) -> str:
    """Return how a message shows a *value* that was not expected."""
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case dict():
            return "keys and values" if value else "{}"
        case list() | tuple():
            return "a list" if value else "[]"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _setting(dotted: str) -> str:
    return f"--set {dotted}"
