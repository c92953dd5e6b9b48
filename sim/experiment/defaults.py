"""What holds where an experiment writes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from sim.policy import Policy

__all__ = ["defaults_used"]


def defaults_used(section: BaseModel, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted path and value of every field of *section* that nobody set and that has a value.

    A policy that nobody chose counts as one value, its ``kind``.
    """
    for name in type(section).model_fields:
        value, path, written = getattr(section, name), f"{prefix}{name}", name in section.model_fields_set
        if isinstance(value, Policy) and not written:
            yield path, value.kind
        elif isinstance(value, BaseModel):
            yield from defaults_used(value, f"{path}.")
        elif not written and value not in (None, "", ()):
            yield path, value
