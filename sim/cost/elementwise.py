"""Memory-bound kernels: norms, rotary embedding, residuals, states of linear attention, sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sim.cost.operation import Demand, Work
from sim.cost.rates import MemoryRates

__all__ = ["Elementwise"]


@dataclass(frozen=True, slots=True)
class Elementwise:
    """*kernels* launches that move *bytes_per_row* in all, for each token or sequence."""

    name: str
    repeats: int
    bytes_per_row: float
    kernels: int
    rates: MemoryRates
    rows: Literal["tokens", "sampled", "sequences"] = "tokens"

    def demand(self, work: Work) -> Demand:
        """Return the bytes over the bandwidth and the launches."""
        rows: int = getattr(work, self.rows)
        return Demand(
            memory_s=rows * self.bytes_per_row / self.rates.bytes_per_s,
            fixed_s=self.kernels * self.rates.launch_s,
        )
