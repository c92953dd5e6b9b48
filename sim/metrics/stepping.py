"""How the simulation went through the iterations of the engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sim.metrics.pools import PoolContext
from sim.metrics.rows import StrideRows

__all__ = ["Stepping", "stepping_of"]


@dataclass(frozen=True, slots=True)
class Stepping:
    """Iterations of the engines, those of them that were passed many at once, and why others had to go one by one."""

    iterations: int
    in_strides: int
    why_single: str

    def as_dict(self) -> dict[str, Any]:
        """Return it under its public keys."""
        return {
            "engine_iterations": self.iterations,
            "iterations_in_strides": self.in_strides,
            "single_steps": self.why_single or None,
        }


def stepping_of(pools: Sequence[PoolContext], strides: StrideRows) -> Stepping:
    """Count the iterations of *strides*."""
    return Stepping(
        iterations=int(strides.iterations.sum()),
        in_strides=int(strides.iterations[strides.together > 1].sum()),
        why_single="; ".join(dict.fromkeys(pool.single_steps for pool in pools if pool.single_steps)),
    )
