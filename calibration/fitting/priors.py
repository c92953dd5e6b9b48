"""What is thought of the constants of an engine before its runs are seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from sim.profiles.calibrated_engine import ConstantName, EngineConstants
from sim.profiles.engine import EngineVersion

__all__ = ["FACTORS_DEVIATION", "OTHER_KERNELS_DEVIATION", "Prior", "priors_for", "stand_for_others"]

_FACTORS: tuple[ConstantName, ...] = ("compute_factor", "memory_factor", "kernel_time_factor")
FACTORS_DEVIATION = 0.05
"""How far from 1 factors on an engine's own kernels are thought to be."""
OTHER_KERNELS_DEVIATION = 0.5
"""The same where nobody timed the kernels, and those of another engine or accelerator stand in: half of the 15 factors
on memory rates that were fitted so lie within a third of 1, as half of a normal distribution of this width do."""
_BOUNDS, _OTHER_KERNELS_BOUNDS = (0.5, 1.5), (0.02, 3.0)
"""Ends of the search, far from what is thought: the lowest factors that were fitted are 0.04, of vLLM's products on
MI300X and Max 1550 in 2024."""


def stand_for_others(deviation: float) -> bool:
    """Tell whether factors of so wide a *deviation* stand for kernels that nobody timed."""
    return deviation > FACTORS_DEVIATION


class Prior(NamedTuple):
    """What is thought of a constant before the runs are seen: normal, and lognormal of factors.

    *deviation* is in units of the constant; of factors it is one of their logarithms.
    """

    name: ConstantName
    mean: float
    deviation: float
    low: float
    high: float

    def at(self, place: float) -> float:
        """Return the value that is *place* standard deviations from the mean."""
        if self.name in _FACTORS:
            return min(max(self.mean * math.exp(self.deviation * place), self.low), self.high)
        return min(max(self.mean + self.deviation * place, self.low), self.high)

    def place(self, value: float) -> float:
        """Return how many standard deviations *value* is from the mean."""
        if self.name in _FACTORS:
            return math.log(value / self.mean) / self.deviation
        return (value - self.mean) / self.deviation

    def error(self, deviations: float, value: float) -> float:
        """Return so many standard deviations about *value* in units of the constant."""
        return deviations * self.deviation * (value if self.name in _FACTORS else 1.0)


def priors_for(
    version: EngineVersion, factors_deviation: float = FACTORS_DEVIATION, host_s: float | None = None
) -> tuple[Prior, ...]:
    """Return the priors of every constant that is fitted: the values of the engine's profile, and 1 for factors.

    With *host_s*, an iteration takes the host about so long instead, and a prefill perhaps as long again.

    The compute rate may differ more than the memory rate: kernels timed one by one run at clocks that an accelerator
    full of prompts does not hold.
    """
    host, delay = version.host, version.request_delay
    iteration_s, least_s = (host.per_iteration_s, 1e-3) if host_s is None else (host_s, host_s)

    bounds = _OTHER_KERNELS_BOUNDS if stand_for_others(factors_deviation) else _BOUNDS

    def near(name: ConstantName, value: float, floor: float, high: float) -> Prior:
        return Prior(name, value, max(value, floor), 0.0, high)

    return (
        near("host_per_iteration_s", iteration_s, 1e-3, 20e-3),
        near("host_per_sequence_s", host.per_sequence_s, 10e-6, 300e-6),
        near("host_per_prefill_s", host.per_prefill_s, least_s, 50e-3),
        near("delay_fixed_s", delay.fixed_s, 5e-3, 0.2),
        near("delay_per_prompt_token_s", delay.per_prompt_token_s, 2e-6, 50e-6),
        near("stream_lag_iterations", version.stream_lag_iterations, 2.0, 40.0),
        Prior("compute_factor", 1.0, 2 * factors_deviation, *bounds),
        Prior("memory_factor", 1.0, factors_deviation, *bounds),
        Prior("kernel_time_factor", 1.0, 3 * factors_deviation, 0.3, 3.0),
    )


def about(priors: Sequence[Prior], constants: EngineConstants) -> tuple[Prior, ...]:
    """Return *priors* about what other runs of the engine gave: times as uncertain as they are long at least."""
    return tuple(_about(prior, constants.value(prior.name, prior.mean)) for prior in priors)


def _about(prior: Prior, value: float) -> Prior:
    deviation = prior.deviation if prior.name in _FACTORS else max(prior.deviation, value)
    return prior._replace(mean=value, deviation=deviation)
