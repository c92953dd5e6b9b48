"""The ``costs:`` of an experiment: what is paid beside the accelerators."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Costs"]


class Costs(BaseModel):
    """What is paid beside the accelerators; every default has a source in its description."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    pue: float = Field(
        1.21,
        ge=1,
        description="Power of the data centre over that of its servers; default: middle of the 1.05 to 1.40 of AI"
        " data centres (review of 'Energy use of AI inference', themoonlight.io); all average 1.58 (Uptime, 2023).",
    )
    server_power_factor: float = Field(
        1.38,
        ge=1,
        description="Power of a server over that of its accelerators; default: a server of eight H100 draws 76 % of"
        " 10.2 kW where its GPUs may draw 5.6 kW (arXiv 2506.14551).",
    )
