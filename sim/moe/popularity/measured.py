"""Popularity that somebody recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from sim.errors import ConfigError
from sim.moe.expert_map import Floats
from sim.moe.popularity.base import Popularity
from sim.moe.recordings import read_loads

__all__ = ["Measured"]


class Measured(Popularity):
    """Recorded loads of layers x experts; one layer stands for all. An expert never chosen stays possible, just."""

    kind: Literal["measured"] = "measured"
    path: Path = Field(description="Loads, in any form that `sim moe place` reads.")

    def draw(self, layers: int, experts: int, random: np.random.Generator) -> Floats:
        """Return the file's loads."""
        loads = read_loads(self.path)
        if self.path.suffix == ".jsonl":  # routes do not tell of experts that nobody chose
            loads = np.pad(loads, ((0, 0), (0, max(0, experts - loads.shape[1]))))
        if loads.shape[1] != experts or loads.shape[0] not in (1, layers):
            here, there = f"{loads.shape[0]} x {loads.shape[1]}", f"{layers} x {experts}"
            raise ConfigError(f"loads of {here} layers and experts, where the model has {there}", file=str(self.path))
        if not loads.any(axis=1).all():
            raise ConfigError("a layer without any load", file=str(self.path))
        floor = 1e-9 * loads.sum(axis=1, keepdims=True)
        return np.broadcast_to(np.maximum(loads, floor), (layers, experts)).copy()
