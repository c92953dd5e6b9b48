"""What a month costs: accelerators rented by the hour, reserved or bought, and all that comes with them."""

from __future__ import annotations

from dataclasses import dataclass

from sim.tco.costs import Costs
from sim.tco.finance import HOURS_A_MONTH, MONTHS_A_YEAR, monthly_payment
from sim.tco.month import Fleet, Month

__all__ = ["Bill", "UnitPrices", "bought", "rented"]


@dataclass(frozen=True, slots=True)
class UnitPrices:
    """A month's cost by tokens [$ per million].

    Attributes
    ----------
    input, output
        The cost divided between prompts and answers as the time of the iterations is.
    blended
        Over all tokens.
    all_on_output
        Over the tokens of answers alone, as benchmarks print it.
    """

    input: float
    output: float
    blended: float
    all_on_output: float


@dataclass(frozen=True, slots=True)
class Bill:
    """A month's cost by item [$], and how the accelerators are paid for, in words."""

    scheme: str
    terms: str
    items: dict[str, float]

    @property
    def total_usd(self) -> float:
        """All items together [$ a month]."""
        return sum(self.items.values())

    def unit_prices(self, month: Month, prefill_share: float) -> UnitPrices:
        """Return the cost by tokens of *month*, *prefill_share* of which the prompts cause."""
        return UnitPrices(
            input=_over(self.total_usd * prefill_share, month.input_mtok),
            output=_over(self.total_usd * (1 - prefill_share), month.output_mtok),
            blended=_over(self.total_usd, month.total_mtok),
            all_on_output=_over(self.total_usd, month.output_mtok),
        )


def rented(scheme: str, terms: str, usd_per_hour: float, costs: Costs) -> Bill:
    """Return the bill of accelerators that cost *usd_per_hour* together, used or not, with power and space."""
    return Bill(scheme, terms, {"accelerators": usd_per_hour * HOURS_A_MONTH, **_operation(costs)})


def bought(terms: str, cards_usd: float, fleet: Fleet, month: Month, usd_per_kwh: float, costs: Costs) -> Bill:
    """Return the bill of accelerators that are bought for *cards_usd*, hosted and written off.

    Raises
    ------
    ValueError
        If it is not known what the *fleet* draws.
    """
    if fleet.limit_w is None or month.energy_kwh is None:
        raise ValueError("the power draw is not known")
    servers_usd = cards_usd + fleet.gpus * costs.server_usd_per_gpu
    hardware_usd = servers_usd * (1 + costs.network_capex_share)
    provisioned_kw = fleet.limit_w / 1e3 * costs.server_power_factor
    items = {
        "hardware": monthly_payment(
            hardware_usd, hardware_usd * costs.residual_share, costs.interest_per_year, costs.amortisation_years
        ),
        "electricity": month.energy_kwh * usd_per_kwh,
        "colocation": provisioned_kw * costs.colocation_usd_per_kw_month,
        "support": hardware_usd * costs.support_share_per_year / MONTHS_A_YEAR,
    }
    return Bill("purchase", f"{terms}; ${hardware_usd:,.0f} with servers and network", {**items, **_operation(costs)})


def _operation(costs: Costs) -> dict[str, float]:
    return {
        "staff": costs.staff_share * costs.engineer_usd_per_year / MONTHS_A_YEAR,
        "monitoring": costs.monitoring_usd_per_month,
        "network": costs.network_usd_per_month,
    }


def _over(usd: float, mtok: float) -> float:
    return usd / mtok if mtok else float("nan")
