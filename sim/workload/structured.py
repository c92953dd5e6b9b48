"""Which answers follow a grammar, and which one."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from sim.request import Request
from sim.section import Section
from sim.workload.streams import stream

__all__ = ["StructuredOutput"]


class StructuredOutput(Section):
    """Requests whose answers follow a JSON schema or another grammar; `engine.structured_output` says at what cost."""

    share: float = Field(1.0, gt=0, le=1, description="Fraction of the requests.")
    schemas: int = Field(1, ge=1, description="Different schemas in use, each as often as the others.")

    def mark(self, requests: Sequence[Request], seed: int, of: str = "") -> None:
        """Name the schemas of the *requests*, which are all or those of the class *of*."""
        draws = stream(seed, f"structured output {of}".rstrip())
        chosen = draws.random(len(requests)) < self.share
        places = draws.integers(self.schemas, size=len(requests))
        for request, structured, place in zip(requests, chosen.tolist(), places.tolist(), strict=True):
            if structured:
                request.schema = f"{of} schema {place}".lstrip()
