"""The cheapest deployment that keeps the SLO under the load."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from sim.search.space import Space

__all__ = ["Cheapest"]


class Cheapest(Space):
    """The cheapest deployment of each accelerator that serves the load within the SLO, and of them all."""

    kind: Literal["cheapest"] = "cheapest"
    min_replicas: int = Field(1, ge=1, description="Fewest replicas, such as 2 to survive the loss of one.")
    max_replicas: int = Field(64, ge=1, le=2**15, description="Most replicas.")
    spare_replicas: int = Field(0, ge=0, description="Replicas beyond what the load takes, for failures and upgrades.")
    peak_factor: float = Field(1.0, ge=1, le=1000, description="The SLO must hold at this many times the mean load.")
    max_usd_per_month: float | None = Field(None, gt=0, description="Budget [$/month].")
    max_usd_per_mtok: float | None = Field(
        None, gt=0, description="Highest price of a million output tokens, at the mean load [$]."
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.max_replicas < self.min_replicas:
            raise ValueError(f"max_replicas ({self.max_replicas}) is below min_replicas ({self.min_replicas})")
        return self
