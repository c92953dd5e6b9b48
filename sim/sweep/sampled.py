"""What sampled designs share: points of the unit cube, carried over to the axes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field, model_validator

from sim.ranges import Range
from sim.sweep.base import Settings, Sweep

if TYPE_CHECKING:
    from scipy.stats.qmc import QMCEngine

__all__ = ["Sampled"]

_MOST_AXES = 1000  # more than the fields of an experiment; a Sobol sequence has 21,201 dimensions at most


class Sampled(Sweep):
    """Base of designs that spread a number of points over ranges and choices."""

    __pydantic_extra__: dict[str, Range | Annotated[list[Any], Field(min_length=1)]]

    num_points: int = Field(ge=1, le=100_000, description="Points to spread.")
    design_seed: int = Field(1, ge=0, description="Seed of the design itself; no run draws from it.")

    @model_validator(mode="after")
    def _has_axes(self) -> Self:
        if not self.axes:
            raise ValueError("no axis: write such as workload.arrivals.rate: {low: 1, high: 20}")
        if len(self.axes) > _MOST_AXES:
            raise ValueError(f"{len(self.axes)} axes: at most {_MOST_AXES} are sampled")
        for path, axis in self.axes.items():
            if isinstance(axis, Range):
                axis.check(path)
        return self

    @abstractmethod
    def _engine(self, dimensions: int) -> QMCEngine:
        """Return the sequence of points of the unit cube."""

    def settings(self) -> Iterator[Settings]:
        """Yield each point; of a choice between values, each takes an equal part of its side of the cube."""
        for shares in self._engine(len(self.axes)).random(self.num_points):
            yield {path: _at(axis, float(share)) for (path, axis), share in zip(self.axes.items(), shares, strict=True)}


def _at(axis: Range | list[Any], share: float) -> Any:
    return axis.at(share) if isinstance(axis, Range) else axis[int(share * len(axis))]
