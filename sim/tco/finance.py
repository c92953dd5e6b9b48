"""Payments over time."""

from __future__ import annotations

import math

__all__ = ["HOURS_A_MONTH", "MONTHS_A_YEAR", "SECONDS_A_MONTH", "declining_sum", "monthly_payment"]

MONTHS_A_YEAR = 12
HOURS_A_MONTH = 365 * 24 / MONTHS_A_YEAR
"""730."""
SECONDS_A_MONTH = 3600 * HOURS_A_MONTH


def monthly_payment(price: float, residual: float, interest_per_year: float, years: float) -> float:
    """Return what pays off *price*, less the *residual* value at the end, in equal payments at the end of each month.

    That is the annuity of the present value of what is lost, with a month's interest of *interest_per_year* / 12;
    without interest, the loss over the months.
    """
    months = years * MONTHS_A_YEAR
    rate = interest_per_year / MONTHS_A_YEAR
    if not rate:
        return (price - residual) / months
    discount = math.exp(-months * math.log1p(rate))
    return (price - residual * discount) * rate / (1 - discount)


def declining_sum(first: float, decline_per_year: float, months: int) -> float:
    """Return the sum of payments in each of *months*, of which those a year later are lower by *decline_per_year*."""
    ratio = (1 - decline_per_year) ** (1 / MONTHS_A_YEAR)
    return first * (months if ratio == 1 else (1 - ratio**months) / (1 - ratio))
