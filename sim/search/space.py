"""A space of deployments: every combination of accelerator, parallelism, precision and engine knobs."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from sim.profiles.parallelism import MOST_RANKS
from sim.profiles.quantization import Dtype, KvDtype
from sim.search.base import Search

__all__ = ["Space"]

_Degrees = Annotated[tuple[Annotated[int, Field(ge=1, le=MOST_RANKS)], ...], Field(min_length=1)]


class Space(Search):
    """Base of searches over deployments."""

    gpus: tuple[str, ...] = Field((), description="Hardware profiles; missing: the experiment's.")
    tp: _Degrees | None = Field(None, description="Tensor parallelism; missing: 1, 2, 4, ... up to a node.")
    pp: _Degrees | None = Field(None, description="Pipeline stages; missing: the experiment's.")
    dp: _Degrees | None = Field(None, description="Attention data parallel ranks; missing: the experiment's.")
    ep: _Degrees | None = Field(
        None, description="Ranks over which routed experts are spread; missing: the experiment's."
    )
    precisions: tuple[Dtype, ...] = Field(
        ("bf16", "fp8"),
        min_length=1,
        description="Weights; lower ones than these only where they are written: quality is not simulated.",
    )
    kv_cache: tuple[KvDtype, ...] = Field((), description="Keys and values; missing: the experiment's.")
    knobs: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(
        {}, description="Further axes: dotted path of the experiment to its values."
    )

    @model_validator(mode="after")
    def _paths(self) -> Self:
        for path in self.knobs:
            if not all(path.split(".")):
                raise ValueError(f"{path!r} is no path such as engine.scheduler.max_num_seqs")
        return self
