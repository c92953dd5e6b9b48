"""Matrix products of the linear layers: prefill and decode tokens fused, weights read once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sim.cost.operation import Demand, Work
from sim.cost.rates import GemmRates

__all__ = ["Gemm"]

_ACTIVATION_BYTES = 2.0


@dataclass(frozen=True, slots=True)
class Gemm:
    """``y[m, n] = x[m, k] W[k, n]`` with m the tokens of the iteration, or its sampled sequences.

    The p-norm of three times, and what nothing hides:

    * compute: ``2 m n (k + k0)`` FLOPs, where k0 stands for filling and draining the pipeline of a tile;
    * memory: ``n k w + 2 m (n + k)`` bytes, one pass of the weights and 16-bit inputs and outputs;
    * depth: the walk of one tile along k, which bounds products too small to fill the accelerator;
    * fixed: the launch, and passes of 3 bytes an input element where activations are quantised on the fly.
    """

    name: str
    repeats: int
    k: int
    n: int
    rates: GemmRates
    rows: Literal["tokens", "sampled"] = "tokens"

    def demand(self, work: Work) -> Demand:
        """Return what the product asks for."""
        m, rates = work.tokens if self.rows == "tokens" else work.sampled, self.rates
        moved_bytes = self.n * self.k * rates.weight_bytes + _ACTIVATION_BYTES * m * (self.n + self.k)
        return Demand(
            compute_s=2.0 * m * self.n * (self.k + rates.prologue) / rates.flops_per_s,
            memory_s=moved_bytes / rates.bytes_per_s,
            depth_s=self.k * rates.depth_s,
            sharpness=rates.sharpness,
            fixed_s=rates.launch_s + m * self.k * rates.quantise_s,
        )
