"""How far predictions were off where runs were measured, by regime: the width of every interval."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from sim.profiles.base import Profile
from sim.section import Section

__all__ = ["LOADS", "ErrorRegime", "ErrorTable", "Load"]

Load = Literal["light", "busy", "saturated"]
LOADS: tuple[Load, ...] = ("light", "busy", "saturated")
"""By the share of the time to the first token that a request waits before its first iteration: below a fifth; below
three fifths; above."""


class ErrorRegime(Section):
    """Runs of one kind that were predicted without having been fitted.

    A factor f of a latency says: nine in ten of the measured values were within prediction / f and prediction * f.
    """

    engine: str | None = Field(None, description="Engine profile; missing: every other one.")
    gpus: tuple[str, ...] = Field((), description="Hardware profiles; empty: all others.")
    load: Load | None = Field(None, description="How busy; missing: every other one.")
    rows: int = Field(ge=1, description="Measured runs behind it.")
    factors: dict[str, float] = Field(description="By latency (ttft, tpot, itl, e2el) and throughput.")
    max_input_tokens: float = Field(gt=0, description="Longest mean prompt among them [tokens].")
    max_output_tokens: float = Field(gt=0, description="Longest mean answer among them [tokens].")
    max_running: float = Field(gt=0, description="Most requests in flight among them.")

    @property
    def generality(self) -> tuple[bool, bool, bool]:
        """Sorts the most particular regime first."""
        return not self.gpus, self.engine is None, self.load is None


class ErrorTable(Profile):
    """Regimes, of which the most particular that fits a run counts."""

    aliases: tuple[str, ...] = ()
    beyond_factor: float = Field(2.0, ge=1, description="How many times wider intervals are outside a regime's range.")
    regimes: tuple[ErrorRegime, ...] = Field(min_length=1)

    def of(self, engine: str, gpu: str, load: Load) -> ErrorRegime | None:
        """Return the regime of a run; None if there is none that fits."""
        fitting = sorted(self._fitting(engine, gpu, load), key=lambda regime: regime.generality)
        return fitting[0] if fitting else None

    def _fitting(self, engine: str, gpu: str, load: Load) -> Iterator[ErrorRegime]:
        for regime in self.regimes:
            if (
                regime.engine in (None, engine)
                and (not regime.gpus or gpu in regime.gpus)
                and regime.load in (None, load)
            ):
                yield regime
