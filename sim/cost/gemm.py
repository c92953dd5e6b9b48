"""Matrix products of the linear layers: prefill and decode tokens fused, weights read once."""

from __future__ import annotations

from dataclasses import dataclass

from sim.cost.accelerator import GemmType
from sim.cost.operation import Demand, Work

__all__ = ["Gemm"]

_ACTIVATION_BYTES = 2.0


@dataclass(frozen=True, slots=True)
class Gemm:
    """``y[m, n] = x[m, k] W[k, n]`` with m the tokens of the iteration, or its sampled sequences.

    ``F = 2 m n k``, ``B = n k w + 2 m (n + k)`` and, for quantised activations, ``3 m k`` bytes a pass on top, in
    ``((F/rate)^p + (B/bandwidth)^p)^(1/p) + launch``: a roofline over one pass of the weights.
    """

    name: str
    repeats: int
    k: int
    n: int
    type: GemmType
    of_sampled: bool = False

    def demand(self, work: Work) -> Demand:
        """Return what the product asks for; nothing without rows."""
        m, (rates, weight_bytes, quantise_bytes) = work.sampled if self.of_sampled else work.tokens, self.type
        if not m:
            return Demand()
        read_and_written = self.n * self.k * weight_bytes + _ACTIVATION_BYTES * m * (self.n + self.k)
        return Demand(
            compute_s=2.0 * m * self.n * self.k / rates.flops_per_s,
            memory_s=read_and_written / rates.bytes_per_s,
            launch_s=rates.launch_s + quantise_bytes * m * self.k / rates.bytes_per_s,
            sharpness=rates.sharpness,
        )
