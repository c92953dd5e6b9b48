"""Every combination of the values of each axis."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from sim.sweep.base import Settings, Sweep

__all__ = ["Grid"]


class Grid(Sweep):
    """Every combination of the axes' values; the last axis changes fastest."""

    kind: Literal["grid"] = "grid"
    __pydantic_extra__: dict[str, Annotated[list[Any], Field(min_length=1)]]

    def settings(self) -> Iterator[Settings]:
        """Yield each combination; a grid without axes has one point, the experiment itself."""
        for values in itertools.product(*self.axes.values()):
            yield dict(zip(self.axes, values, strict=True))
