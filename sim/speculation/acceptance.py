"""How many tokens each verification of a request emits, drawn in advance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.workload.streams import stream

__all__ = ["Acceptance"]


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The model accepts the first *i* tokens of a draft, or more, with probability ``rates[i - 1]``.

    Each request has a random stream of its own, so its draws depend neither on the others nor on when it is served.
    Where some verifications have no draft, those that have one are few enough for *mean_draft_tokens* on average.
    """

    rates: tuple[float, ...]
    seed: int = 0
    mean_draft_tokens: float | None = None

    @property
    def tokens_each(self) -> int:
        """Tokens that one verification computes for a sequence: the draft, and the one before it."""
        return 1 + len(self.rates)

    @property
    def computed_each(self) -> float:
        """Tokens that one verification computes for a sequence on average: fewer where some have no draft."""
        return 1 + (len(self.rates) if self.mean_draft_tokens is None else self.mean_draft_tokens)

    def emitted(self, index: int, verifications: int) -> NDArray[np.int64]:
        """Return the tokens that each of the first *verifications* of request *index* emits, at least one."""
        chance = stream(self.seed, f"acceptance {index}").random(verifications)
        rising = np.array(self.rates)[::-1]
        return np.asarray(1 + len(rising) - np.searchsorted(rising, chance, side="right"), dtype=np.int64)
