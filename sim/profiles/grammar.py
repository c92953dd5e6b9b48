"""A library that lets answers follow a grammar, such as a JSON schema: what its masks and its compiler cost."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sim.profiles.base import Profile
from sim.section import Section
from sim.units import Seconds

__all__ = ["Difficulty", "Grammar", "GrammarTimes"]

Difficulty = Literal["mixed", "typical"]
"""Whether schemas are as in a large collection, its few very hard ones included (the mean), or as most (the median)."""


class GrammarTimes(Section):
    """A time by the difficulty of the schemas."""

    mixed: Seconds = Field(ge=0, description="Mean over a large collection of schemas [s].")
    typical: Seconds = Field(ge=0, description="Median of the same [s].")

    def of(self, difficulty: Difficulty) -> float:
        """Return the time with schemas of that *difficulty* [s]."""
        return self.mixed if difficulty == "mixed" else self.typical


class Grammar(Profile):
    """Times on one processor core."""

    mask_s: GrammarTimes = Field(description="The tokens of the vocabulary that may come next, for one sequence [s].")
    compile_s: GrammarTimes = Field(description="From a new schema to its first mask [s].")
