"""The line of a user who knows only how the step time grows; also the exact reference of the scheduling tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from sim.batch import Batch
from sim.cost.pace import CostModel, Pace, Rebalances
from sim.units import Seconds

__all__ = ["Affine", "AffineStep"]

_Rate = Annotated[Seconds, Field(ge=0)]


class Affine(CostModel):
    """``t = base_s + per_token_s*N + per_context_token_s*C + per_seq_s*S``, and nothing else."""

    kind: Literal["affine"] = "affine"
    base_s: _Rate = Field(0.0, description="Every iteration [s].")
    per_token_s: _Rate = Field(0.0, description="Each token computed in the iteration [s].")
    per_context_token_s: _Rate = Field(
        0.0, description="Each token that a computing sequence has after the iteration, cached ones included [s]."
    )
    per_seq_s: _Rate = Field(0.0, description="Each sequence that takes part, padding rows of a static batch too [s].")

    @model_validator(mode="after")
    def _takes_time(self) -> Affine:
        if not (self.base_s or self.per_token_s or self.per_seq_s or self.per_context_token_s):
            raise ValueError("an iteration that takes no time never ends: give base_s, per_token_s or another constant")
        return self

    def build(self, *, draft_tokens: float = 0, draft_s: float = 0.0, **_deployment: Any) -> AffineStep:
        """Return the step cost; of the deployment only drafts matter to it, whose time every iteration has."""
        rates = self.per_token_s, self.per_context_token_s, self.per_seq_s
        return AffineStep(self.base_s + draft_s, *rates, tokens_each=1 + draft_tokens)


@dataclass(frozen=True, slots=True)
class AffineStep:
    """Step cost of `Affine`. Each product is exact when its constant is a multiple of a power of two."""

    base_s: float
    per_token_s: float
    per_context_token_s: float
    per_seq_s: float
    windows: tuple[int, ...] = ()
    tokens_each: float = 1
    rebalances: Rebalances | None = None

    def splits(self, batch: Batch) -> bool:
        """Return False: a line knows no halves."""
        return False

    def pace(self, batch: Batch, growing: tuple[int, ...] = ()) -> Pace:
        """Return the time of *batch*; each decode adds one token of context an iteration."""
        first_s = (
            self.base_s
            + self.per_token_s * batch.tokens
            + self.per_context_token_s * batch.context_tokens
            + self.per_seq_s * batch.sequences
        )
        return Pace(first_s, self.per_context_token_s * batch.decodes, 1 if batch.chunks else math.inf)

    def durations_s(
        self, batch: Batch, context_tokens: NDArray[np.int64], windows: Sequence[NDArray[np.int64]]
    ) -> NDArray[np.float64]:
        """Return the times of iterations that differ from *batch* in their contexts [s]."""
        more_tokens = context_tokens - batch.decode_context_tokens
        return np.asarray(self.pace(batch).first_s + self.per_context_token_s * more_tokens)

    def breakdown(self, batch: Batch) -> dict[str, float]:
        """Return the four terms of the line [s]."""
        return {
            "base": self.base_s,
            "tokens": self.per_token_s * batch.tokens,
            "context": self.per_context_token_s * batch.context_tokens,
            "sequences": self.per_seq_s * batch.sequences,
        }

    def limits(self, batch: Batch) -> dict[str, float]:
        """Return the shares of the four terms: a line does not know what is behind it."""
        terms, total_s = self.breakdown(batch), self.pace(batch).first_s
        return {name: seconds / total_s for name, seconds in terms.items()} if total_s else {}

    def imbalance_s(self, batch: Batch) -> float | None:
        """Return None: a line has no experts."""

    def admission_delay_s(self, input_tokens: int) -> float:
        """Return 0: a request is in the queue at the instant of its arrival."""
        return 0.0
