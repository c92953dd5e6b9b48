"""The highest load that keeps the SLO."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from sim.search.base import Search

__all__ = ["Capacity"]


class Capacity(Search):
    """The highest load of this deployment that keeps the SLO, by bisection on steps of *tolerance*."""

    kind: Literal["capacity"] = "capacity"
    of: Literal["rate", "concurrency", "users"] | None = Field(
        None, description="What is counted; missing: users if there are any, else what the arrivals have."
    )
    tolerance: float = Field(0.02, ge=0.001, le=0.5, description="Step between two loads, as a share of the lower one.")
    low: float = Field(1e-3, ge=1e-6, description="Smallest load to consider.")
    high: float = Field(1e5, le=1e7, description="Largest load to consider.")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.high <= self.low:
            raise ValueError(f"high ({self.high:g}) must be above low ({self.low:g})")
        return self
