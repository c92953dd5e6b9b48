"""How many tokens words become, by language, and what a chat template adds."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sim.profiles.base import Profile

__all__ = ["Languages"]


class Languages(Profile):
    """Factors from words to tokens."""

    tokens_per_word: dict[str, Annotated[float, Field(gt=0)]] = Field(min_length=1, description="By language.")
    by_character: tuple[str, ...] = Field((), description="Languages in which a word is counted as one character.")
    tokens_per_message: float = Field(ge=0, description="What a chat template adds to each message [tokens].")
    tokens_per_request: float = Field(ge=0, description="What it adds to each prompt once [tokens].")
