"""What all sweeps share: a point is a value for each of some dotted paths of the experiment."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Self

from pydantic import ConfigDict, Field, model_validator

from sim.policy import Policy

__all__ = ["Settings", "Sweep"]

Settings = dict[str, Any]
"""The values of one point, by dotted path of the experiment."""


class Sweep(Policy):
    """Base of the sweeps; one file each.

    Keys other than a sweep's own options are its axes: dotted paths of the experiment, such as
    ``deployment.parallelism.tp``.
    """

    model_config = ConfigDict(extra="allow")

    replications: int = Field(
        1, ge=1, description="Runs of each point: with the experiment's seed, the next one, ...; alike at all points."
    )

    @property
    def axes(self) -> dict[str, Any]:
        """What the sweep says of each path, in the order of the file."""
        return dict(self.model_extra or {})

    @abstractmethod
    def settings(self) -> Iterator[Settings]:
        """Yield each point, in the order in which they are numbered."""

    @model_validator(mode="after")
    def _paths(self) -> Self:
        for path in self.axes:
            if not all(path.split(".")):
                raise ValueError(f"{path!r} is no path such as deployment.parallelism.tp")
        return self
