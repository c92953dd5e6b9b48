"""Writes a `Model` as a profile that people can read and correct."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from sim.profiles.model import Model
from sim.wholefile import write_whole

__all__ = ["to_yaml"]

WIDTH = 110
ONE_LINE = 92
"""Longest mapping that is written on one line, so that ruamel never breaks it."""


def to_yaml(model: Model, path: Path) -> None:
    """Write *model* to *path*, without the fields that have their defaults; make its folder if there is none."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.width = WIDTH
    yaml.indent(mapping=2, sequence=4, offset=2)
    stream = io.StringIO()
    yaml.dump(_document(model), stream)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, stream.getvalue().encode())


def _document(model: Model) -> dict[str, Any]:
    """Return the fields in the order of the class, sources last, each layer on a few lines."""
    fields = model.model_dump(exclude_defaults=True, mode="json")
    sources, notes = fields.pop("sources"), fields.pop("notes", None)
    fields["layers"] = [_layer(layer) for layer in model.layers]
    for name in ("checkpoint", "aliases"):
        if name in fields:
            fields[name] = _flow(fields[name])
    return fields | ({"notes": notes} if notes else {}) | {"sources": sources}


def _layer(layer: BaseModel) -> dict[str, Any]:
    parts = {name: _part(value) for name in ("attention", "mlp") if (value := getattr(layer, name)) is not None}
    rest = layer.model_dump(exclude_defaults=True, exclude={"count", "attention", "mlp"})
    return {"count": layer.model_dump()["count"], **parts, **rest}


def _part(part: BaseModel) -> Any:
    fields = part.model_dump(exclude_defaults=True)
    if fields.get("v_head_dim") == fields.get("head_dim", -1):
        del fields["v_head_dim"]
    whole = {
        key: int(value) if isinstance(value, float) and value.is_integer() else value for key, value in fields.items()
    }
    return _flow({"kind": part.model_dump()["kind"], **whole})


def _flow(value: Any) -> Any:
    """Return *value* so that ruamel writes it on one line, if it fits there."""
    from ruamel.yaml.comments import CommentedMap, CommentedSeq

    if isinstance(value, dict) and len(str(value)) - 2 * len(value) > ONE_LINE:
        return {key: _flow(item) if isinstance(item, dict) else item for key, item in value.items()}

    inner = CommentedMap(value) if isinstance(value, dict) else CommentedSeq(value)
    inner.fa.set_flow_style()
    return inner
