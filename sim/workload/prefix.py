"""A prefix that many prompts share, such as a system prompt, so that prefix caching has something to find."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from sim.request import Request
from sim.section import Section
from sim.workload.streams import stream

__all__ = ["SharedPrefix"]


class SharedPrefix(Section):
    """The beginning of prompts that is the same for all requests of a group."""

    tokens: int = Field(
        ge=1, examples=[512], description="Length of the shared beginning; part of the prompt's length [tokens]."
    )
    groups: int = Field(1, ge=1, description="Different prefixes in use, each as often as the others.")
    share: float = Field(1.0, gt=0, le=1, description="Fraction of the requests that begin with one of them.")

    def mark(self, requests: Sequence[Request], seed: int) -> None:
        """Name the shared beginning of the *requests* that have no named pieces of their own yet."""
        draws = stream(seed, "prefix")
        shares = draws.random(len(requests)) < self.share
        groups = draws.integers(self.groups, size=len(requests))
        for request, shared, group in zip(requests, shares.tolist(), groups.tolist(), strict=True):
            if shared and not request.segments:
                request.segments = ((f"prefix-{group}", min(self.tokens, request.input_tokens)),)
