"""Replicas of an experiment that are unlike others."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sim.autoscaler import AnyAutoscaler
from sim.experiment.engine import EngineOptions
from sim.profiles.parallelism import Parallelism
from sim.profiles.quantization import Quantization
from sim.section import Section

__all__ = ["Pool"]


class Pool(Section):
    """Equal replicas beside other pools; what it leaves out is as `deployment`, `model` and `engine` have it."""

    name: str | None = Field(None, min_length=1, description="Missing: pool and its number, from 0.")
    role: Literal["prefill", "decode"] | None = Field(
        None, description="Only compute prompts, or only write answers to them; missing: both."
    )
    model: str | None = Field(None, description="What it serves, where pools serve several models.")
    share: float | None = Field(
        None, ge=0, le=1, description="Of the requests, those for its model; pools of one model share it."
    )
    gpu: str | None = Field(None, description="Hardware profile.")
    replicas: int | None = Field(None, ge=1, description="Equal copies of the model.")
    parallelism: Parallelism | None = Field(None, description="How one replica spreads over accelerators.")
    quantization: Quantization | None = Field(None, description="Data types.")
    engine: EngineOptions | None = Field(None, description="Flags that differ from the experiment's `engine`.")
    autoscaler: AnyAutoscaler | None = Field(None, description="How many replicas it has, from `replicas` on.")
