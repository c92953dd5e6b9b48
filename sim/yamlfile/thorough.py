"""All of YAML 1.2, by ruamel.yaml, and the words for what is none.

Nothing in a file is executed: tags other than the core ones are refused.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

from sim.yamlfile.document import Document, PathTuple, shown
from sim.yamlfile.limits import MAX_DEPTH, MAX_VALUES, MOST_BITS

__all__ = ["read_thoroughly"]

_HALVES = re.compile("[\ud800-\udfff]")
_TAG = "tag:yaml.org,2002:"
_CORE_TAGS = {_TAG + name for name in ("null", "bool", "int", "float", "str", "map", "seq", "merge", "timestamp")}


def read_thoroughly(text: str, document: Document, numbered: bool) -> Document:
    """Return *document*, which is empty yet, with the mapping that *text* holds; raise its error for any other text.

    Lines are noted if they are *numbered*.
    """
    yaml = YAML(typ="safe", pure=True)
    error_class, file = document.error_class, document.file
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
        if isinstance(value, int) and value.bit_length() > MOST_BITS:
            raise self.document.error(path, f"{node.value[:20]}... is too large a number")
        return self._characters(value, path) if isinstance(value, str) else value

    def _characters(self, text: str, path: PathTuple) -> str:
        """Return *text* with characters that JSON escapes as two halves made whole; refuse half a character."""
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16") if _HALVES.search(text) else text
        except UnicodeDecodeError:
            raise self.document.error(path, f"half a character in {text[:40]!a}") from None
