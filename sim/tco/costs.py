"""The ``costs:`` of an experiment: what is paid beside the accelerators, with sources for every default."""

from __future__ import annotations

from pydantic import Field

from sim.profiles.apis import ApiPrice
from sim.profiles.workload import HourlyRate
from sim.section import Section

__all__ = ["Costs", "Hybrid"]


class Hybrid(Section):
    """A share of the traffic that goes to a stronger model of others."""

    share: float = Field(ge=0, le=1, description="Share of the tokens.")
    api: str = Field("anthropic claude-sonnet-5", description="Offer in `profiles/apis/frontier.yaml`, or of `apis`.")


class Costs(Section):
    """What is paid beside the accelerators."""

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
    carbon_kg_per_kwh: float = Field(
        0.384, ge=0, description="Carbon dioxide of the electricity; default: United States in 2024 (Ember) [kg/kWh]."
    )
    embodied_kg_per_gpu: float = Field(
        318, ge=0, description="Carbon of making a GPU and its share of a server; default: A100 (HotCarbon '23) [kg]."
    )
    server_usd_per_gpu: float = Field(
        10000,
        ge=0,
        description="Chassis, processors, memory and network cards for one accelerator; default: a server of eight H100"
        " for $300,000 to 350,000 (gpuleaseindex.com, 2026) less eight cards at $30,000 [$].",
    )
    network_capex_share: float = Field(
        0.125,
        ge=0,
        description="Switches, transceivers and cables over the price of the servers; default: 10 to 15 %"
        " (gpuleaseindex.com, 2026).",
    )
    amortisation_years: float = Field(
        3, gt=0, le=20, description="Years that bought hardware is used; default: usual in published comparisons [a]."
    )
    residual_share: float = Field(
        0.30, ge=0, le=1, description="What it then sells for; default: 25 to 35 % after 36 months (gpuleaseindex.com)."
    )
    interest_per_year: float = Field(
        0.08, ge=0, le=1, description="Interest on what is not yet paid back; default: an assumption, near prime rate."
    )
    support_share_per_year: float = Field(
        0.05, ge=0, description="Support and repair over the price of the hardware, a year; default: an assumption."
    )
    colocation_usd_per_kw_month: float = Field(
        184.06,
        ge=0,
        description="Space and cooling for a kilowatt that may be drawn, electricity apart; default: 250 to 500 kW in"
        " primary markets (CBRE, North America Data Center Trends H2 2024) [$/kW a month].",
    )
    engineer_usd_per_year: float = Field(
        200_000, ge=0, description="An engineer, all in; default: $150,000 to 250,000 (neuralrouting.io, 2026-03-26)."
    )
    staff_share: float = Field(
        0.2, ge=0, description="Engineers who keep it running; default: 20 % of one (neuralrouting.io, 2026-03-26)."
    )
    monitoring_usd_per_month: float = Field(
        500, ge=0, description="Metrics and logs; default: $500 to 2,000 (aipromptshub.co, 2026), the low end [$]."
    )
    network_usd_per_month: float = Field(
        1000, ge=0, description="Load balancers, egress, addresses; default: peakinfer.com, inference platforms [$]."
    )
    spare_replicas: int = Field(
        0, ge=0, description="Replicas that stand by, beyond those of the deployment, or of each pool."
    )
    load_factor: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Mean load of a month over that of the experiment; missing: from `hourly_rate`, or 1 where the"
        " arrivals follow the day themselves.",
    )
    hourly_rate: HourlyRate = Field(
        (
            *(1.081, 0.361, 0.223, 0.084, 0.068, 0.074, 0.118, 0.365, 0.780, 1.050, 1.503, 1.530),
            *(1.290, 1.429, 1.618, 1.638, 1.506, 1.280, 1.469, 1.557, 1.270, 1.263, 1.344, 1.098),
        ),
        description="Traffic in each hour of a day, in any unit; the experiment is taken as its busiest hour. Default:"
        " the mean week of RAGPulse, a university's assistant.",
    )
    apis: dict[str, ApiPrice] = Field({}, description="Your own API prices, by a name.")
    compare: tuple[str, ...] = Field(
        (),
        description="Further APIs to compare with, as provider, a space and model: offers in `profiles/apis`, or of the"
        " package genai-prices if it is installed.",
    )
    compliance_premium: float = Field(
        0.0, ge=0, description="Surcharge on API prices for regulated data; published: 0.20 to 0.40."
    )
    self_hosting_given: bool = Field(False, description="Data may not leave: APIs are shown, and decide nothing.")
    api_price_decline_per_year: float = Field(
        0.0, ge=0, lt=1, description="Share by which API prices fall in a year, over `amortisation_years`."
    )
    hybrid: Hybrid | None = Field(None, description="Send a share of the tokens to a frontier API.")
