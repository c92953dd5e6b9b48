"""What an engine's own code costs, fitted to serving runs, instead of the starting values of its profile."""

from __future__ import annotations

import re
from typing import Literal, get_args

from pydantic import Field, model_validator

from sim.profiles.base import Profile
from sim.profiles.calibrated import Constant, Fit
from sim.profiles.engine import EngineVersion, HostTime, RequestDelay
from sim.profiles.hardware import Hardware
from sim.section import Section

__all__ = ["CONSTANTS", "ConstantName", "EngineCalibration", "EngineConstants", "holds", "numbers"]

ConstantName = Literal[
    "host_per_iteration_s",
    "host_per_sequence_s",
    "host_per_prefill_s",
    "delay_fixed_s",
    "delay_per_prompt_token_s",
    "stream_lag_iterations",
    "compute_factor",
    "memory_factor",
    "kernel_time_factor",
]
CONSTANTS: tuple[ConstantName, ...] = get_args(ConstantName)
"""Times of host and request delay [s], iterations by which a client sees tokens late, and factors on the rates and
fixed times of all kernels, which are 1 for the kernels that were measured one by one."""

_FACTORS = ("compute_factor", "memory_factor", "kernel_time_factor")


class EngineConstants(Section):
    """The constants of some versions of an engine on some accelerators; those left out stay as the profile has them."""

    since: str = Field("0", description="First release for which they hold.")
    before: str | None = Field(None, description="First release for which they no longer hold; missing: they still do.")
    gpus: tuple[str, ...] = Field((), description="Hardware profiles that they were fitted on; empty: all others.")
    overlapped: bool | None = Field(None, description="The host works while the GPU does; missing: as the profile.")
    constants: dict[ConstantName, Constant] = Field(description="By name.")
    correlations: dict[ConstantName, dict[ConstantName, float]] = Field(
        {}, description="How the errors of two constants go together, from -1 to 1; those left out: not at all."
    )
    fit: Fit

    @model_validator(mode="after")
    def _correlates_its_own(self) -> EngineConstants:
        for first, row in self.correlations.items():
            for second, value in row.items():
                if not {first, second} <= self.constants.keys() or first == second:
                    raise ValueError(f"correlations: {first} and {second} are not two of its constants")
                if not -1 <= value <= 1:
                    raise ValueError(f"correlations: {value:g} of {first} and {second} is not between -1 and 1")
        return self

    def value(self, name: ConstantName, otherwise: float) -> float:
        """Return a constant, or *otherwise* where it was not fitted."""
        constant = self.constants.get(name)
        return otherwise if constant is None else constant.value

    def applied_to(self, version: EngineVersion) -> EngineVersion:
        """Return *version* with these constants in the place of its own."""
        host, delay = version.host, version.request_delay
        return version.model_copy(
            update={
                "host": HostTime(
                    per_iteration_s=self.value("host_per_iteration_s", host.per_iteration_s),
                    per_sequence_s=self.value("host_per_sequence_s", host.per_sequence_s),
                    per_prefill_s=self.value("host_per_prefill_s", host.per_prefill_s),
                    overlapped=host.overlapped if self.overlapped is None else self.overlapped,
                ),
                "request_delay": RequestDelay(
                    fixed_s=self.value("delay_fixed_s", delay.fixed_s),
                    per_prompt_token_s=self.value("delay_per_prompt_token_s", delay.per_prompt_token_s),
                ),
                "stream_lag_iterations": self.value("stream_lag_iterations", version.stream_lag_iterations),
            }
        )

    @property
    def factors(self) -> dict[str, float]:
        """The factors on kernels that were fitted, by the names of the cost model's fields."""
        return {name: constant.value for name, constant in self.constants.items() if name in _FACTORS}


class EngineCalibration(Profile):
    """All fitted constants of one engine."""

    aliases: tuple[str, ...] = ()
    engine: str | None = Field(None, description="Engine whose runs these were; missing: that of the same name.")
    entries: tuple[EngineConstants, ...] = Field(min_length=1, description="By versions and accelerators.")

    def of(self, version: str, hardware: Hardware) -> EngineConstants | None:
        """Return the constants for a *version* such as ``0.19.1`` on *hardware*: its own before those for all; None."""
        holding = [entry for entry in self.entries if holds(entry.since, entry.before, version)]
        own = [entry for entry in holding if hardware.name in entry.gpus]
        for_all = [entry for entry in holding if not entry.gpus]
        return next(iter((*own, *for_all)), None)

    @model_validator(mode="after")
    def _unambiguous(self) -> EngineCalibration:
        keys = [(entry.since, gpu) for entry in self.entries for gpu in entry.gpus or ("all",)]
        if twice := next((key for key in keys if keys.count(key) > 1), None):
            raise ValueError(f"two entries hold from {twice[0]} on for {twice[1]}")
        return self


def holds(since: str, before: str | None, version: str) -> bool:
    """Tell whether what holds *since* a release and *before* another, or to this day, does for *version*."""
    return numbers(since) <= numbers(version) and (before is None or numbers(version) < numbers(before))


def numbers(version: str | None) -> tuple[float, ...]:
    """Return the numbers of *version*, to compare it with others; ``latest`` and None are later than any."""
    found = re.match(r"[vb]?(\d+(?:\.\d+)*)", version or "")
    return tuple(map(float, found[1].split("."))) if found else (float("inf"),)
