"""What the answer depends on, and what would change the decision."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from sim.ranges import Range
from sim.search.base import Search

__all__ = ["Sensitivity"]

_Name = Annotated[str, Field(min_length=1)]


class Sensitivity(Search):
    """How figures of a run follow the values of some paths, one at a time and all together; and which rival is best.

    One at a time each path goes to both ends of its range; Sobol indices tell the share of the variance that a path
    explains, alone and with the others. Along each path the best of the *rivals* is told, and where it changes.
    """

    kind: Literal["sensitivity"] = "sensitivity"
    paths: Annotated[dict[str, Range], Field(min_length=1, max_length=20)] = Field(
        description="Range by dotted path: rates, lengths, constants, prices."
    )
    outputs: Annotated[tuple[_Name, ...], Field(min_length=1)] = Field(
        ("usd_per_mtok", "output_throughput", "p95_ttft_ms", "p95_tpot_ms"), description="Figures that are followed."
    )
    sobol_points: int = Field(
        0, ge=0, le=4096, description="Base sample of Sobol indices, a power of two, (paths + 2) runs each; 0: none."
    )
    rivals: dict[str, dict[str, Any]] = Field(
        {}, description="Deployments that compete, by name: settings by dotted path, such as deployment.gpu."
    )
    steps: int = Field(8, ge=1, le=100, description="Parts of a range between which the best rival may change.")

    @model_validator(mode="after")
    def _sound(self) -> Self:
        for path, over in self.paths.items():
            if not all(path.split(".")):
                raise ValueError(f"{path!r} is no path such as workload.arrivals.rate")
            over.check(path)
        if self.sobol_points & (self.sobol_points - 1):
            raise ValueError(f"sobol_points must be a power of two, not {self.sobol_points}")
        if self.sobol_points and len(self.paths) < 2:
            raise ValueError("sobol_points share the variance among paths: name two or more")
        if len(self.rivals) == 1:
            raise ValueError("one rival has nobody to compete with: name two or more")
        return self
