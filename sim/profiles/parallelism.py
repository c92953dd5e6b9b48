"""How one replica spreads over accelerators."""

from __future__ import annotations

from pydantic import Field

from sim.section import Section

__all__ = ["MOST_RANKS", "Parallelism"]

MOST_RANKS = 4096
"""Largest degree of any parallelism: far beyond what anybody runs."""


class Parallelism(Section):
    """Degrees of parallelism of one replica; each defaults to 1."""

    tp: int = Field(1, ge=1, le=MOST_RANKS, description="`tensor_parallel`: ranks that share every matrix.")
    pp: int = Field(1, ge=1, le=MOST_RANKS, description="`pipeline_parallel`: stages of consecutive layers.")
    dp: int = Field(
        1, ge=1, le=MOST_RANKS, description="Attention data parallel: ranks with their own requests and KV."
    )
    ep: int = Field(
        1, ge=1, le=MOST_RANKS, description="`expert_parallel`: ranks over which the routed experts are spread."
    )

    @property
    def gpus(self) -> int:
        """Accelerators of one replica: ``tp * pp * dp``; experts live on the same ones."""
        return self.tp * self.pp * self.dp
