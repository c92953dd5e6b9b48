"""Calibrated profiles of libraries that send tokens to the ranks of their experts and back."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sim.profiles.base import Profile
from sim.profiles.calibrated import Constant, Fit
from sim.section import Section

__all__ = ["AllToAllCalibration", "Direction", "ExchangeConstants", "Mode", "PhaseConstants"]

Mode = Literal["low_latency", "high_throughput"]
Direction = Literal["dispatch", "combine"]


class PhaseConstants(Section):
    """One direction: ``launch + bytes that leave the rank or its node / rate``."""

    launch_s: Constant = Field(description="Time of the smallest batch inside a CUDA graph [s].")
    link: Constant = Field(description="Rate as a share of one direction of the slowest link on the way.")


class ExchangeConstants(Section):
    """Dispatch of one byte an element, and combine of two."""

    dispatch: PhaseConstants
    combine: PhaseConstants
    fit: Fit

    def of(self, direction: Direction) -> PhaseConstants:
        """Return those of one direction."""
        return self.dispatch if direction == "dispatch" else self.combine


class _Modes(Section):
    low_latency: dict[int, ExchangeConstants] = Field(
        {}, description="One message for each expert of a token; by nodes."
    )
    high_throughput: dict[int, ExchangeConstants] = Field(
        min_length=1, description="One message for each rank of a token, over a network for each node; by nodes."
    )


class AllToAllCalibration(Profile):
    """What a library reaches of the links, by its mode and the number of nodes; `low_latency` may be missing."""

    low_latency: dict[int, ExchangeConstants] = Field({}, description="As of an accelerator.")
    high_throughput: dict[int, ExchangeConstants] = Field(min_length=1, description="As of an accelerator.")
    several_nodes_of: str | None = Field(
        None, description="Library whose times it has over several nodes; missing: its own were measured."
    )
    accelerators: dict[str, _Modes] = Field({}, description="Own constants of some; what they lack is as above.")

    def tables(self, mode: Mode, accelerator: str) -> dict[int, ExchangeConstants]:
        """Return the constants of *mode* by nodes; none where the library lacks it."""
        own: dict[int, ExchangeConstants] = getattr(self.accelerators.get(accelerator), mode, {})
        common: dict[int, ExchangeConstants] = getattr(self, mode)
        return common | own
