"""A placement that somebody else decided."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from sim.errors import ConfigError
from sim.moe.expert_map import ExpertMap, Floats, Layout
from sim.moe.placement.base import Placement
from sim.moe.recordings.maps import read_map

__all__ = ["Fixed"]


class Fixed(Placement):
    """The map in a file: TensorRT-LLM YAML, vLLM-Ascend JSON, or the JSON of ``sim moe place``."""

    kind: Literal["fixed"] = "fixed"
    path: Path = Field(description="File of the map.")

    def place(self, loads: Floats, layout: Layout) -> ExpertMap:
        """Return the map of the file, which must be of this layout and of as many layers as *loads*."""
        slots = read_map(self.path)
        if slots.shape != (len(loads), layout.slots):
            here, there = f"{len(loads)} x {layout.slots}", " x ".join(map(str, slots.shape))
            raise ConfigError(f"a map of {there} layers and slots, where {here} are wanted", file=str(self.path))
        if slots.max() >= layout.experts:
            raise ConfigError(f"expert {slots.max()} of {layout.experts}, counted from 0", file=str(self.path))
        return ExpertMap(layout, slots)
