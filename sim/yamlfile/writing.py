"""Plain data as YAML that people like to read, and that reads back as the same data."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["to_yaml"]

_ONE_LINE = 80
"""Longest mapping or list that is written on one line."""
_PLAIN = re.compile(r"[A-Za-z0-9][\w./@+-]*(?: [\w./@+-]+)*", re.ASCII)
"""Text that no reader takes for anything but text or a number; any other one is quoted."""


def to_yaml(data: Mapping[str, Any]) -> str:
    """Return *data* as YAML: what is short on one line, what is not with a key a line.

    `parse_yaml` of it gives *data* again. Values are those that it gives: mappings with text keys, lists, text, finite
    numbers, booleans and None.
    """
    from ruamel.yaml import YAML

    yaml, stream = YAML(), io.StringIO()
    yaml.width = 2**20  # a text is never folded
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.dump({_text(key): _styled(value, len(key) + 2) for key, value in data.items()}, stream)
    return stream.getvalue()


def _styled(value: Any, column: int) -> Any:
    """Return *value* marked to stand on one line if it fits there, from *column* on."""
    from ruamel.yaml.comments import CommentedMap, CommentedSeq

    if isinstance(value, str):
        return _text(value)
    if not isinstance(value, Mapping | list):
        return value
    fits = column + len(str(value)) - 2 * str(value).count("'") <= _ONE_LINE
    if isinstance(value, Mapping):
        inner: Any = CommentedMap({_text(key): _styled(item, column + len(key) + 4) for key, item in value.items()})
    else:
        inner = CommentedSeq(_styled(item, column + 4) for item in value)
    if fits or not value:
        inner.fa.set_flow_style()
    return inner


def _text(text: str) -> str:
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString

    return text if _PLAIN.fullmatch(text) else DoubleQuotedScalarString(text)
