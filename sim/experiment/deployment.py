"""The accelerators of an experiment."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from sim.profiles.parallelism import Parallelism
from sim.profiles.quantization import Quantization
from sim.section import Section

__all__ = ["MOST_GPUS", "Deployment"]

MOST_GPUS = 2**15
"""Most accelerators that are simulated: each replica is an object."""


class Deployment(Section):
    """The accelerators and how replicas spread over them."""

    gpu: str = Field(description="Hardware profile.")
    replicas: int = Field(1, ge=1, description="Equal copies of the model behind the router.")
    parallelism: Parallelism = Field(Parallelism(), description="How one replica spreads over accelerators.")
    interconnect: Literal["auto", "pcie"] = Field(
        "auto",
        description="Between the accelerators of a node. auto: the fastest way that they can have, such as an NVLink"
        " bridge; pcie: no bridge. Messages pass through the host's memory only between cards that never reach each"
        " other's.",
    )
    quantization: Quantization = Field(Quantization(), description="Data types; missing: the checkpoint's own.")

    @model_validator(mode="after")
    def _of_this_world(self) -> Self:
        if (gpus := self.replicas * self.parallelism.gpus) > MOST_GPUS:
            raise ValueError(f"{gpus:,} accelerators: at most {MOST_GPUS:,} are simulated")
        return self
