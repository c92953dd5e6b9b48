"""An experiment as the query of a link: what differs from a worked example, each as ``--set`` would say it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sim.errors import ConfigError
from sim.yamlfile import Document, parse_yaml

__all__ = ["data_of", "joined", "parted", "pruned", "query_of"]

Data = dict[str, Any]

_MOST_SETTINGS = 200
_MOST_CHARACTERS = 16_000
"""Longest query that is read: browsers and proxies cut longer ones."""


def query_of(data: Data, base: Data) -> dict[str, str]:
    """Return what turns *base* into *data*, by dotted path; an empty text takes a value away."""
    return dict(_differences(base, data, ""))


def data_of(query: Mapping[str, str], base: Document) -> Data:
    """Return *base* with a *query* that `query_of` made, or somebody else.

    Nothing is checked beyond that it is YAML of a reasonable size; raise a `ConfigError` where it is not.
    """
    written = "".join((*query, *query.values()))
    brackets = written.count("[") + written.count("{")  # deep nesting takes seconds to refuse
    if len(query) > _MOST_SETTINGS or len(written) > _MOST_CHARACTERS or brackets > _MOST_SETTINGS:
        raise ConfigError("the link is too long to be one of this page")
    document = base
    for path, text in query.items():
        document = document.override(f"{path}={text}")
    return pruned(document.data)


def joined(query: Mapping[str, str]) -> str:
    """Return a *query* as one text, a setting a line."""
    return "\n".join(f"{path}={text}" for path, text in query.items())


def parted(text: str) -> dict[str, str]:
    """Return the query that `joined` made *text* of; lines without a ``=`` are passed over."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def pruned(data: Data) -> Data:
    """Return *data* without what is None: to write nothing is to leave it open."""
    kept = {key: pruned(value) if isinstance(value, dict) else value for key, value in data.items()}
    return {key: value for key, value in kept.items() if value is not None}


def _differences(base: Data, data: Data, prefix: str) -> Iterator[tuple[str, str]]:
    for key in dict.fromkeys((*base, *data)):
        before, after = base.get(key), data.get(key)
        if before == after and type(before) is type(after):
            continue
        if _same_sort(before, after):
            yield from _differences(before, after, f"{prefix}{key}.")  # type: ignore[arg-type]  # both are mappings
        else:
            yield f"{prefix}{key}", "" if after is None else _text(after)


def _same_sort(before: Any, after: Any) -> bool:
    """Tell whether two values are mappings whose keys have paths, and of the same kind if they are policies."""
    if not (isinstance(before, dict) and isinstance(after, dict)) or before.get("kind") != after.get("kind"):
        return False
    return all(key and "." not in key and key.strip() == key for key in (*before, *after))


def _text(value: Any) -> str:
    """Return *value* so that YAML reads it as it is: text bare where that is possible."""
    if isinstance(value, str) and _reads_back(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _reads_back(text: str) -> bool:
    try:
        return bool(text) and text.strip() == text and parse_yaml(f"_:\n {text}", "").data["_"] == text
    except ConfigError:
        return False
