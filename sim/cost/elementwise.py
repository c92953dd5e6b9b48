"""Memory-bound kernels: norms, rotary embedding, residuals, activations, states of linear attention, sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sim.cost.accelerator import Rates
from sim.cost.operation import Demand, Work

__all__ = ["Elementwise"]


@dataclass(frozen=True, slots=True)
class Elementwise:
    """*kernels* launches that move *bytes_per_row* in all, for each token, sampled sequence or computing sequence."""

    name: str
    repeats: int
    bytes_per_row: float
    kernels: int
    rates: Rates
    rows: Literal["tokens", "sampled", "sequences"] = "tokens"

    def demand(self, work: Work) -> Demand:
        """Return the bytes over the bandwidth and the launches; nothing without rows."""
        rows: int = getattr(work, self.rows)
        if not rows:
            return Demand()
        return Demand(
            memory_s=rows * self.bytes_per_row / self.rates.bytes_per_s, launch_s=self.kernels * self.rates.launch_s
        )
