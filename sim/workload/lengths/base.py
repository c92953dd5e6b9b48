"""How long prompts and answers are."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sim.policy import Policy
from sim.section import Section
from sim.workload.streams import stream
from sim.workload.traffic import Floats, Ints

__all__ = ["Distribution", "LengthPolicy", "Lengths", "SeparateLengths", "whole_tokens"]

_LONGEST = 2**31 - 1


class Lengths(NamedTuple):
    """Prompt and answer length of every request [tokens], each at least 1."""

    input_tokens: Ints
    output_tokens: Ints


class LengthPolicy(Policy):
    """Base of the length policies; one file each."""

    @abstractmethod
    def draw(self, count: int, seed: int, beside: Path) -> Lengths:
        """Return the lengths of *count* requests; *beside* is the experiment's folder, where profiles may lie."""


class Distribution(Section):
    """Distribution of one of the two lengths."""

    @abstractmethod
    def draw(self, count: int, draws: np.random.Generator) -> Ints:
        """Return *count* lengths [tokens]."""


class SeparateLengths(LengthPolicy):
    """Base of policies that draw prompt and answer independently, from two distributions of one family."""

    input_tokens: Distribution
    output_tokens: Distribution

    def draw(self, count: int, seed: int, beside: Path) -> Lengths:
        """Return the lengths of *count* requests, from one random stream each."""
        return Lengths(
            self.input_tokens.draw(count, stream(seed, "input_tokens")),
            self.output_tokens.draw(count, stream(seed, "output_tokens")),
        )


def whole_tokens(lengths: Floats, low: int = 1, high: int | None = None) -> Ints:
    """Round *lengths* to whole tokens from *low* to *high*."""
    return np.rint(np.clip(lengths, low, high or _LONGEST)).astype(np.int64)
