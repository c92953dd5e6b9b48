"""What an hour of an experiment costs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sim.profiles.prices import PriceKind
from sim.section import Section

__all__ = ["Prices"]

_Usd = Annotated[float, Field(ge=0)]
_Price = _Usd | dict[str, _Usd]


class Prices(Section):
    """What an hour costs."""

    gpu_hour_usd: _Price | None = Field(
        None, description="One accelerator, or each by its name; missing: published for it, of this kind [$/h]."
    )
    reserved_gpu_hour_usd: _Price | None = Field(
        None, description="The same with a commitment of a year or more; missing: published, if it is [$/h]."
    )
    purchase_usd: _Price | None = Field(
        None, description="One accelerator, bought, without its server; missing: published, if it is [$]."
    )
    kind: PriceKind | None = Field(
        None, description="Which published price where none is given; missing: on demand, else reserved, else tco."
    )
    electricity_usd_per_kwh: _Usd = Field(
        0.13,
        description="Electricity of what is bought; default: commercial customers in the United States, 2025 (EIA,"
        " Electric Power Monthly, table 5.6.A) [$/kWh].",
    )
