"""What all profiles share: frozen, no unknown keys, and a source for every number."""

from __future__ import annotations

from pydantic import Field

from sim.section import Section

__all__ = ["Profile"]


class Profile(Section):
    """Base of hardware, model, engine and workload profiles: one YAML file each, named as the file."""

    name: str = Field(description="Name by which experiments choose it; equals the file's name.")
    aliases: tuple[str, ...] = Field((), description="Other names that people use for it.")
    sources: dict[str, str] = Field(
        min_length=1, description="Where the numbers come from: field name (or 'all') to citation."
    )
    notes: str = Field("", description="What a reader should know about these numbers.")
