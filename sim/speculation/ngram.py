"""Drafts are looked up: what followed the last few tokens where they occurred before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from sim.profiles.draft import Draft
from sim.profiles.model import Model
from sim.profiles.quantization import Quantization
from sim.speculation.base import Speculation

__all__ = ["Ngram"]


class Ngram(Speculation):
    """Prompt lookup on the host; its time is *draft_s*, by default none.

    A sequence in which nothing is found has no draft in vLLM; here it has one that is rejected. Source: vLLM
    `v1/spec_decode/ngram_proposer.py`.
    """

    kind: Literal["ngram"] = "ngram"

    def draft(self, target: Model, quantization: Quantization, load: Callable[[str], Model]) -> Draft | None:
        """Return None: no model drafts."""
        return None
