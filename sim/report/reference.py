"""The fields of an experiment as a page of Markdown, from their schema."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["reference_page"]

Schema = Mapping[str, Any]

_HEAD = """\
# Reference

Every field of an experiment, as `python -m sim schema --format markdown` prints it from the models that read the YAML.
A field without a default is required, unless it says what happens where it is missing. Times are in seconds where a
name ends in `_s` or a number stands alone; a text such as `2 s` or `50 ms` says its own unit."""


def reference_page(schema: Schema) -> str:
    """Return the page for the JSON *schema* of an experiment: a section for the whole and for each part, in order."""
    defs: dict[str, Schema] = schema["$defs"]
    titles = {"": "An experiment"}
    parts: deque[tuple[str, Schema]] = deque([("", schema)])
    sections = [_HEAD]
    while parts:
        name, part = parts.popleft()
        path = "" if not name else titles[name]
        rows = []
        for field, spec in part.get("properties", {}).items():
            for kind, found in _parts_of(spec):
                if found not in titles:
                    titles[found] = _title(path, field, kind)
                    parts.append((found, defs[found]))
            rows.append(_row(field, spec, titles, required=field in part.get("required", ())))
        sections.append("\n".join(_section(titles[name], part, rows)))
    return "\n\n".join(sections)


def _section(title: str, part: Schema, rows: list[str]) -> Iterator[str]:
    text = " ".join(str(part.get("description", "")).split("\n\n")[0].split())
    yield f"## {title}\n"
    if text:
        yield f"{text}\n"
    if rows:
        yield from ("| field | values | default | meaning |", "|---|---|---|---|", *rows)


def _row(field: str, spec: Schema, titles: Mapping[str, str], *, required: bool) -> str:
    default = "" if required or spec.get("default") is None else f"`{json.dumps(spec['default'])}`"
    if isinstance(spec.get("default"), dict):
        default = "as below"
    meaning = " ".join(str(spec.get("description", "")).split())
    return " | ".join(["| `" + field + "`", _values(spec, titles), default, meaning.replace("|", "\\|") + " |"])


def _parts_of(spec: Schema) -> Iterator[tuple[str, str]]:
    """Yield the kind, if it is one of several, and the name of every part that *spec* leads to."""
    kinds = {target: kind for kind, target in spec.get("discriminator", {}).get("mapping", {}).items()}
    if target := spec.get("$ref"):
        yield "", _name(target)
    for key in ("anyOf", "oneOf"):
        for option in spec.get(key, ()):
            for kind, name in _parts_of(option):
                yield kinds.get(option.get("$ref"), kind), name
    for key in ("items", "additionalProperties"):
        if isinstance(spec.get(key), dict):
            yield from _parts_of(spec[key])


def _values(spec: Schema, titles: Mapping[str, str]) -> str:
    """Say what a field may be."""
    if target := spec.get("$ref"):
        title = titles[_name(target)]
        return f"[`{title.rsplit(': ', 1)[-1]}`](#{_anchor(title)})"
    if "const" in spec:
        return f"`{spec['const']}`"
    if "enum" in spec:
        return ", ".join(f"`{value}`" for value in spec["enum"])
    options = [option for key in ("anyOf", "oneOf") for option in spec.get(key, ()) if option.get("type") != "null"]
    if options:
        return ", ".join(dict.fromkeys(_values(option, titles) for option in options))
    if spec.get("type") == "array":
        return f"list of {_values(spec['items'], titles)}" if spec.get("items") else "list"
    if spec.get("type") == "object":
        inner = spec.get("additionalProperties")
        return f"mapping to {_values(inner, titles)}" if isinstance(inner, dict) else "mapping"
    return str(spec.get("type", "any")) + _bounds(spec)


def _bounds(spec: Schema) -> str:
    signs = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
    bounds = [f"{sign} {spec[key]:g}" for key, sign in signs.items() if key in spec]
    return f" {', '.join(bounds)}" if bounds else ""


def _title(path: str, field: str, kind: str) -> str:
    parent = re.sub(r": .*", "", path)
    title = f"{parent}.{field}" if parent else field
    return f"{title}: {kind}" if kind else title


def _anchor(title: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _name(target: str) -> str:
    return target.rsplit("/", 1)[1]
