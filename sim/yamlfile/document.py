"""A YAML mapping as plain data, with the file and line of every value.

YAML 1.2, so ``on`` and ``yes`` are text, ``3.35e12`` is a number, and a key keeps its spelling (``0.10``).
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from sim.errors import ConfigError, UserError, did_you_mean
from sim.yamlfile.limits import MAX_BYTES
from sim.yamlfile.quick import read_quickly

__all__ = ["Document", "PathTuple", "parse_yaml", "read_yaml", "shown"]

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
    document = Document({}, file, error_class, {(): (file, 1 if numbered else None)})
    quick = read_quickly(text)
    if quick is None:
        from sim.yamlfile.thorough import read_thoroughly  # its parser takes long to import, and is rarely needed

        return read_thoroughly(text, document, numbered)
    data, lines = quick
    places = {path: (file, line if numbered else None) for path, line in lines.items()}
    return dataclasses.replace(document, data=data, places=document.places | places)


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
