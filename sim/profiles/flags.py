"""The flags of an engine's server: which fields of an experiment they are, which change nothing, which are refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from pydantic import Field, model_validator

from sim.profiles.base import Profile
from sim.section import Section

__all__ = ["FlagTable", "ModelledFlag", "spelling"]


class ModelledFlag(Section):
    """A flag that a field of the experiment stands for."""

    names: tuple[str, ...] = Field(min_length=1, description="Its spellings; MODEL: what stands before all flags.")
    field: str = Field(description="Dotted path of the field.")
    values: dict[str, Any] | None = Field(
        None, description="What the field becomes by the flag's value, null: it is left out; missing: the value itself."
    )
    instead: dict[str, dict[str, Any]] = Field(
        {}, description="By the flag's value, the other fields that it then stands for."
    )
    refused: dict[str, str] = Field({}, description="Values that are not taken, to why.")
    excludes: dict[str, tuple[Any, ...]] = Field(
        {},
        description="By a value that leaves the field out, what must not be written there, none: anything; missing: any"
        " may, the flag says no more than that the engine chooses.",
    )
    only_with: dict[str, str] = Field({}, description="Other flags, to the values without which it has no effect.")
    many: bool = Field(False, description="The value is a list of numbers.")
    alone: str | None = Field(None, description="Of a list: the field that one number by itself stands for.")
    counts: bool = Field(False, description="A number may end in k, m or g (thousands), or K, M or G (of 1024).")
    on: Any = Field(None, description="What the field becomes where the flag stands, which takes no value.")
    off: Any = Field(None, description="The same for its form with no-; missing: that is refused.")
    beside: str | None = Field(None, description="Another flag of the same field, which has to mean the same.")
    write: str = Field(
        "", description="Not taken from the command line, but for `values`: what to write in the field instead."
    )

    @property
    def fields(self) -> tuple[str, ...]:
        """Every field that it may stand for."""
        alone = () if self.alone is None else (self.alone,)
        return (self.field, *alone, *(field for fields in self.instead.values() for field in fields))

    def lacks(self, values: Mapping[str, str | None]) -> str:
        """Return the flag and value without which it has no effect, if *values*, by flag, have it not; else nothing."""
        return next((f"{name} {text}" for name, text in self.only_with.items() if values.get(name) != text), "")

    def contradicts(self, text: str | None, written: Any) -> bool:
        """Tell whether its value *text*, which it may not write, is another than the *written* one of its field."""
        if text is None or written is None:
            return False
        if self.only_with and self.values is not None and written != self.values.get(text):
            return True
        excluded = self.excludes.get(text)
        return excluded is not None and (not excluded or written in excluded)


class FlagTable(Profile):
    """All flags of one release of an engine's server, each of them once."""

    command: str = Field(description="What they follow.")
    version: str = Field(description="Release or commit whose flags these are.")
    modelled: tuple[ModelledFlag, ...]
    missing: tuple[str, ...] = Field((), description="Values that leave a flag as if it were not there.")
    variables: bool = Field(False, description="Variables of the environment, named after the flags, say the same.")
    attached: bool = Field(False, description="The value of a flag of one letter may follow it at once, as in -O3.")
    defaults: dict[str, tuple[str, ...]] = Field(
        {},
        description="By flag, modelled or not, the values with which it is as if it were not there; false: its form"
        " with no-, too.",
    )
    irrelevant: dict[str, tuple[str, ...]] = Field(description="Why flags change no figure, to these flags.")
    refused: dict[str, tuple[str, ...]] = Field(description="Why flags are refused, to these flags.")

    @cached_property
    def by_name(self) -> dict[str, ModelledFlag]:
        """Every flag that is modelled, by each of its spellings."""
        return {spelling(name): flag for flag in self.modelled for name in flag.names}

    @cached_property
    def keyed(self) -> frozenset[str]:
        """Flags of which a key is in the table, by their spelling: their value is a JSON object."""
        return frozenset(name.partition(".")[0] for name in self.by_name if "." in name)

    def of_variable(self, name: str) -> str | None:
        """Return the flag that a variable of the environment stands for; None: it is none of the server's."""
        flag = f"--{spelling(name.lower())}" if self.variables and name.isupper() else ""
        return next((each for each in (name, flag) if self.has(each)), None)

    def has(self, name: str) -> bool:
        """Tell whether a flag is in the table."""
        return spelling(name) in self.by_name or spelling(name) in self.reasons

    def is_default(self, name: str, text: str | None) -> bool:
        """Tell whether the flag *name* is as if it were not there by its value *text*."""
        return text is not None and text.lower() in self._defaults.get(spelling(name), ())

    @cached_property
    def _defaults(self) -> dict[str, tuple[str, ...]]:
        return {spelling(name): values for name, values in self.defaults.items()}

    @cached_property
    def reasons(self) -> dict[str, tuple[bool, str]]:
        """Whether each other flag is refused, and why, by its spelling."""
        return {spelling(name): (refused, why) for refused, why, name in self._others()}

    @property
    def names(self) -> list[str]:
        """Every flag, as it is written."""
        return [*(name for flag in self.modelled for name in flag.names), *(name for _, _, name in self._others())]

    def _others(self) -> Iterator[tuple[bool, str, str]]:
        for refused, group in ((False, self.irrelevant), (True, self.refused)):
            yield from ((refused, why, name) for why, names in group.items() for name in names)

    @model_validator(mode="after")
    def _once(self) -> FlagTable:
        spellings = Counter(spelling(name) for name in self.names)
        if twice := next((name for name, times in spellings.items() if times > 1), None):
            raise ValueError(f"{twice} is there twice")
        if unknown := next((name for name in self.defaults if not self.has(name)), None):
            raise ValueError(f"defaults: {unknown} is not among the flags")
        return self


def spelling(name: str) -> str:
    """Return *name* as it is looked up: servers take an underscore for a hyphen."""
    return name.replace("_", "-")
