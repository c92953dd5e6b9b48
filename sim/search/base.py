"""What all searches share: the load, how sure to be, and how much to simulate for it."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from sim.policy import Policy
from sim.section import Section
from sim.units import Seconds

__all__ = ["Search", "Users"]


class Users(Section):
    """People instead of requests: each sends a request, reads the answer, thinks, and sends the next one."""

    population: int = Field(ge=1, le=10_000_000, description="People who have access.")
    active_share: float = Field(1.0, gt=0, le=1, description="Share of them who work with it at the same time.")
    burst: int | None = Field(
        None, ge=1, le=10_000_000, description="Population at the peak, which the SLO must hold for; missing: no peak."
    )
    think_s: Seconds = Field(
        0.0,
        ge=0,
        description="Mean pause between an answer and the next request, exponential; 0: always one in flight [s].",
    )

    @model_validator(mode="after")
    def _peak_above(self) -> Self:
        if self.burst is not None and self.burst < self.population:
            raise ValueError(f"burst ({self.burst}) must not be below population ({self.population})")
        return self


class Search(Policy):
    """Base of the searches; one file each."""

    confidence: float = Field(
        0.9,
        ge=0.5,
        lt=1,
        description="Probability with which the answer keeps the SLO, over model error and noise; of each test, too.",
    )
    replications: int = Field(5, ge=1, le=100, description="Most runs of a test; fewer where they suffice to decide.")
    users: Users | None = Field(None, description="The load as people, instead of the workload's arrivals.")
