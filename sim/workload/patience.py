"""How long clients wait before they give a request up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from sim.request import Request
from sim.section import Section
from sim.units import Seconds
from sim.workload.streams import stream

__all__ = ["Patience"]


class Patience(Section):
    """A client's limit for the whole answer, after which it closes the connection."""

    mean_s: Seconds = Field(gt=0, examples=[30.0], description="Mean time a client waits for its answer [s].")
    distribution: Literal["fixed", "exponential"] = Field("fixed", description="Spread of these times.")
    share: float = Field(1.0, gt=0, le=1, description="Fraction of the requests whose client gives up at all.")

    def mark(self, requests: Sequence[Request], seed: int) -> None:
        """Draw after how long each of the *requests* is given up."""
        draws = stream(seed, "patience")
        impatient = draws.random(len(requests)) < self.share
        factors = draws.standard_exponential(len(requests)) if self.distribution == "exponential" else None
        for place, request in enumerate(requests):
            if impatient[place]:
                request.patience_s = self.mean_s * (1.0 if factors is None else float(factors[place]))
