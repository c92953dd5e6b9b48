"""What every way to speculate has in common."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Annotated

from pydantic import Field, field_validator, model_validator

from sim.policy import Policy
from sim.profiles.draft import Draft
from sim.profiles.model import Model
from sim.profiles.quantization import Quantization
from sim.speculation.acceptance import Acceptance
from sim.units import Seconds

__all__ = ["Speculation"]

_Share = Annotated[float, Field(ge=0, le=1)]


class Speculation(Policy):
    """A draft of *num_speculative_tokens* tokens for every sequence that decodes, verified in one iteration.

    The iteration computes the draft and the token before it, and emits what the model accepts of it and one token
    more (Leviathan et al. 2023, arXiv:2211.17192; vLLM `v1/core/sched/scheduler.py`, `v1/spec_decode`).
    """

    num_speculative_tokens: int = Field(ge=1, le=32, description="Tokens of a draft: --speculative-config [tokens].")
    acceptance: _Share | tuple[_Share, ...] = Field(
        description="Chance of a draft's token if all before it are accepted; or, as vLLM logs it, for each position"
        " the share of drafts that are accepted so far."
    )
    draft_s: Seconds | None = Field(
        None, ge=0, description="Drafting in one iteration; missing: what the drafting model computes [s]."
    )

    draft_tensor_parallel_size: int | None = Field(
        None, ge=1, description="Accelerators that share the drafting model: 1, or, if missing, as many as the model's."
    )

    @field_validator("acceptance")
    @classmethod
    def _falls(cls, rate: float | tuple[float, ...]) -> float | tuple[float, ...]:
        if isinstance(rate, tuple) and any(later > sooner for sooner, later in pairwise(rate)):
            raise ValueError("a later token is accepted only with those before it, so the rates cannot rise")
        return rate

    @model_validator(mode="after")
    def _one_a_position(self) -> Speculation:
        if isinstance(self.acceptance, tuple) and len(self.acceptance) != self.num_speculative_tokens:
            given, asked = len(self.acceptance), self.num_speculative_tokens
            raise ValueError(f"acceptance has {given} positions, num_speculative_tokens {asked}")
        return self

    @property
    def found_share(self) -> float:
        """Share of the verifications that have a draft."""
        return 1.0

    @property
    def mean_draft_tokens(self) -> float:
        """Tokens drafted for a verification, on average [tokens]."""
        share, tokens = self.found_share, self.num_speculative_tokens
        return tokens if share == 1 else share * tokens

    def draws(self, seed: int) -> Acceptance:
        """Return the draws of a run with that *seed*."""
        rate = self.acceptance
        if not isinstance(rate, tuple):
            rate = tuple(rate**position for position in range(1, self.num_speculative_tokens + 1))
        return Acceptance(tuple(self.found_share * each for each in rate), seed, self.mean_draft_tokens)

    def draft(self, target: Model, quantization: Quantization, load: Callable[[str], Model]) -> Draft | None:
        """Return what drafts for *target*, which is served in *quantization*; None where no model does.

        *load* finds model profiles. Raises `ConfigError` where there can be no such draft.
        """
        raise NotImplementedError
