"""Lengths of a published workload."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from sim.profiles.library import load_workload
from sim.workload.lengths.base import LengthPolicy, Lengths
from sim.workload.lengths.quantiles import QuantileLengths

__all__ = ["PresetLengths"]


class PresetLengths(LengthPolicy):
    """Lengths by the name of a workload profile; see `profiles/workloads`."""

    kind: Literal["preset"] = "preset"
    name: str = Field(examples=["chat"], description="Name of a workload profile: chat, code_completion, rag, ...")

    def draw(self, count: int, seed: int, beside: Path) -> Lengths:
        """Return the lengths of *count* requests.

        Raises
        ------
        ProfileError
            There is no such workload profile.
        """
        preset = load_workload(self.name, beside)
        tables = QuantileLengths(
            input_tokens=preset.input_tokens,
            output_tokens=preset.output_tokens,
            rank_correlation=preset.rank_correlation,
        )
        return tables.draw(count, seed, beside)
