"""Self-hosting against an API that charges by the token."""

from __future__ import annotations

from dataclasses import dataclass

from sim.profiles.apis import ApiPrice
from sim.tco.costs import Costs
from sim.tco.finance import MONTHS_A_YEAR, declining_sum
from sim.tco.month import Month

__all__ = ["PREMIUMS", "RULES", "ApiBill", "api_bill", "api_usd", "break_even_mtok", "hybrid_usd", "published_rule"]

PREMIUMS = (0.2, 0.4)
"""Published surcharges for regulated data, over list price."""
RULES = ((20_000, "stay with the API"), (80_000, "optimise routing first"), (float("inf"), "analyse self-hosting"))
"""Published thresholds: an API bill below so many dollars a month -> what to do."""


@dataclass(frozen=True, slots=True)
class ApiBill:
    """One API against one month's bill of one's own.

    Attributes
    ----------
    usd
        What the API charges for the month [$], the compliance premium included.
    break_even_mtok
        Millions of tokens a month, in the same mix, from which self-hosting is cheaper; inf: never.
    premium_break_even_mtok
        The same with each of `PREMIUMS` on top of the list price.
    horizon_usd, horizon_own_usd
        Over the years of amortisation, with API prices that fall and a constant bill of one's own [$].
    """

    name: str
    usd: float
    break_even_mtok: float
    premium_break_even_mtok: tuple[float, float]
    horizon_usd: float
    horizon_own_usd: float


def api_usd(month: Month, price: ApiPrice, premium: float = 0.0) -> float:
    """Return what an API charges for *month* [$]."""
    cached = price.input_usd_per_mtok if price.cached_input_usd_per_mtok is None else price.cached_input_usd_per_mtok
    prompts_usd = (month.input_mtok - month.cached_mtok) * price.input_usd_per_mtok + month.cached_mtok * cached
    return (prompts_usd + month.output_mtok * price.output_usd_per_mtok) * (1 + premium)


def break_even_mtok(own_usd: float, month: Month, price: ApiPrice, premium: float = 0.0) -> float:
    """Return the tokens a month [millions], in the mix of *month*, for which the API charges *own_usd*."""
    usd = api_usd(month, price, premium)
    return own_usd * month.total_mtok / usd if usd else float("inf")


def api_bill(name: str, price: ApiPrice, own_usd: float, month: Month, costs: Costs) -> ApiBill:
    """Compare the API called *name* with a bill of one's own of *own_usd* a month."""
    low, high = PREMIUMS
    usd = api_usd(month, price, costs.compliance_premium)
    months = round(costs.amortisation_years * MONTHS_A_YEAR)
    return ApiBill(
        name=name,
        usd=usd,
        break_even_mtok=break_even_mtok(own_usd, month, price, costs.compliance_premium),
        premium_break_even_mtok=(
            break_even_mtok(own_usd, month, price, low),
            break_even_mtok(own_usd, month, price, high),
        ),
        horizon_usd=declining_sum(usd, costs.api_price_decline_per_year, months),
        horizon_own_usd=own_usd * months,
    )


def hybrid_usd(own_usd: float, month: Month, price: ApiPrice, share: float, premium: float = 0.0) -> float:
    """Return the cost of a month of which *share* goes to a frontier API and the rest to one's own machines [$]."""
    return own_usd + share * api_usd(month, price, premium)


def published_rule(api_usd_per_month: float) -> str:
    """Return what the published thresholds say to an API bill."""
    return next(advice for below, advice in RULES if api_usd_per_month < below)
