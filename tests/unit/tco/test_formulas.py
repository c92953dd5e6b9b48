"""Every formula of the money by hand."""

import math

import pytest

from sim.profiles.apis import ApiPrice
from sim.tco.api import api_bill, api_usd, break_even_mtok, hybrid_usd, published_rule
from sim.tco.bill import bought, rented
from sim.tco.costs import Costs
from sim.tco.finance import declining_sum, monthly_payment
from sim.tco.month import Fleet, Month, Rates, load_factor

OPERATION = {
    "staff_share": 0.5,
    "engineer_usd_per_year": 120_000,
    "monitoring_usd_per_month": 300,
    "network_usd_per_month": 200,
}
MONTH = Month(input_mtok=800, cached_mtok=300, output_mtok=200)


def test_an_annuity_is_the_spreadsheets():
    # PMT(8%/12, 36, -360000, 108000) of any spreadsheet
    assert monthly_payment(360_000, 108_000, 0.08, 3) == pytest.approx(8616.76, abs=0.01)
    # what is owed after each month's interest and payment ends at the residual value
    owed = 360_000.0
    for _ in range(36):
        owed = owed * (1 + 0.08 / 12) - monthly_payment(360_000, 108_000, 0.08, 3)
    assert owed == pytest.approx(108_000)


def test_without_interest_the_loss_is_spread_evenly():
    assert monthly_payment(120_000, 24_000, 0.0, 4) == 96_000 / 48
    assert monthly_payment(120_000, 24_000, 1e-9, 4) == pytest.approx(2000, rel=1e-6)


def test_falling_prices():
    assert declining_sum(100, 0.0, 24) == 2400
    monthly = 0.64 ** (1 / 12)
    assert declining_sum(100, 0.36, 24) == pytest.approx(sum(100 * monthly**month for month in range(24)))
    halves = declining_sum(100, 0.5, 24)
    assert halves == pytest.approx(declining_sum(100, 0.5, 12) * 1.5)


def test_the_mean_of_a_day_over_its_peak():
    assert load_factor([0] * 12 + [2] * 12) == 0.5


def test_a_month_of_tokens_energy_and_carbon():
    carbon = {"carbon_kg_per_kwh": 0.4, "embodied_kg_per_gpu": 360}
    costs = Costs(server_power_factor=1.5, pue=1.2, amortisation_years=3, **carbon)
    fleet = Fleet(gpus=8, limit_w=5600, idle_w=800, busy_w=4800)
    month = Month.at(Rates(input_tok_s=1000, output_tok_s=250, cached_tok_s=100), 0.5, fleet, costs)
    seconds = 730 * 3600
    assert month.input_mtok == pytest.approx(0.5 * 1000 * seconds / 1e6)
    assert month.cached_mtok == pytest.approx(month.input_mtok / 10)
    assert month.output_mtok == pytest.approx(month.input_mtok / 4)
    assert month.energy_kwh == pytest.approx((0.8 + 0.5 * 4.0) * 1.5 * 1.2 * 730)
    assert month.carbon_kg == pytest.approx(month.energy_kwh * 0.4 + 8 * 360 / 36)


def test_a_fleet_of_unknown_power_has_no_energy():
    month = Month.at(Rates(10, 10), 1.0, Fleet(gpus=8), Costs())
    assert (month.energy_kwh, month.carbon_kg) == (None, None)
    with pytest.raises(ValueError, match="power"):
        bought("", 1000, Fleet(gpus=8), month, 0.1, Costs())


def test_rent():
    bill = rented("rent", "", 16 * 1.25, Costs(**OPERATION))
    assert bill.items == {"accelerators": 16 * 1.25 * 730, "staff": 5000, "monitoring": 300, "network": 200}
    assert bill.total_usd == 14_600 + 5500


def test_purchase():
    hardware = {"server_usd_per_gpu": 10_000, "network_capex_share": 0.125, "support_share_per_year": 0.06}
    finance = {"interest_per_year": 0.08, "amortisation_years": 3, "residual_share": 0.3}
    costs = Costs(**OPERATION, **hardware, **finance, server_power_factor=1.5, colocation_usd_per_kw_month=200)
    month = Month(100, 0, 100, energy_kwh=3000, carbon_kg=0)
    bill = bought("", 8 * 30_000, Fleet(8, 5600, 800, 4800), month, 0.15, costs)
    assert bill.items == pytest.approx(
        {
            "hardware": 8616.76,
            "electricity": 450,
            "colocation": 5.6 * 1.5 * 200,
            "support": 360_000 * 0.06 / 12,
            "staff": 5000,
            "monitoring": 300,
            "network": 200,
        },
        abs=0.01,
    )


def test_cost_by_tokens():
    costs = Costs(staff_share=0, monitoring_usd_per_month=0, network_usd_per_month=0)
    unit = rented("rent", "", 1.0, costs).unit_prices(MONTH, prefill_share=0.25)
    assert unit.input == 730 * 0.25 / 800
    assert unit.output == 730 * 0.75 / 200
    assert unit.blended == 730 / 1000
    assert unit.all_on_output == 730 / 200
    assert unit.input * 800 + unit.output * 200 == pytest.approx(730)


def test_an_api_charges_cached_prompts_less():
    price = ApiPrice(input_usd_per_mtok=2, cached_input_usd_per_mtok=0.5, output_usd_per_mtok=10)
    assert api_usd(MONTH, price) == 500 * 2 + 300 * 0.5 + 200 * 10
    assert api_usd(MONTH, price, premium=0.2) == pytest.approx(3150 * 1.2)
    assert api_usd(MONTH, ApiPrice(input_usd_per_mtok=2, output_usd_per_mtok=10)) == 800 * 2 + 200 * 10


def test_break_even_is_where_the_bills_are_equal():
    price = ApiPrice(input_usd_per_mtok=1, output_usd_per_mtok=6)
    # 0.8 x $1 + 0.2 x $6 = $2 a million of this mix
    assert break_even_mtok(20_000, MONTH, price) == 10_000
    assert break_even_mtok(20_000, MONTH, price, premium=0.25) == 8_000
    assert math.isinf(break_even_mtok(20_000, MONTH, ApiPrice(input_usd_per_mtok=0, output_usd_per_mtok=0)))


def test_an_api_over_the_years():
    costs = Costs(compliance_premium=0.5, api_price_decline_per_year=0.36, amortisation_years=2)
    bill = api_bill("x", ApiPrice(input_usd_per_mtok=1, output_usd_per_mtok=6), 3000, MONTH, costs)
    assert bill.usd == 3000  # 2000 with the premium
    assert bill.break_even_mtok == 1000
    assert bill.premium_break_even_mtok == pytest.approx((3000 / 2.4, 3000 / 2.8))
    assert bill.horizon_own_usd == 72_000
    assert bill.horizon_usd == pytest.approx(declining_sum(3000, 0.36, 24))


def test_a_share_at_the_frontier():
    assert hybrid_usd(3000, MONTH, ApiPrice(input_usd_per_mtok=1, output_usd_per_mtok=6), 0.2) == 3000 + 0.2 * 2000


@pytest.mark.parametrize(
    ("usd", "advice"),
    [(0, "stay"), (19_999, "stay"), (20_000, "optimise"), (79_999, "optimise"), (80_000, "analyse"), (1e9, "analyse")],
)
def test_published_thresholds(usd, advice):
    assert published_rule(usd).startswith(advice)
