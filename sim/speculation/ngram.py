"""Drafts are looked up: what followed the last few tokens where they occurred before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from pydantic import Field

from sim.profiles.draft import Draft
from sim.profiles.model import Model
from sim.profiles.quantization import Quantization
from sim.speculation.base import Speculation

__all__ = ["Ngram"]


class Ngram(Speculation):
    """Prompt lookup on the host; its time is *draft_s*, by default none.

    A sequence in which nothing is found has no draft: it computes one token, and so much less on average are the rows
    of an iteration. *acceptance* counts drafts that there are, as vLLM logs it. Source: vLLM
    `v1/spec_decode/ngram_proposer.py`.
    """

    kind: Literal["ngram"] = "ngram"
    found: float = Field(1.0, gt=0, le=1, description="Share of the verifications for which a draft is found.")

    @property
    def found_share(self) -> float:
        """Share of the verifications that have a draft."""
        return self.found

    def draft(self, target: Model, quantization: Quantization, load: Callable[[str], Model]) -> Draft | None:
        """Return None: no model drafts."""
        return None
