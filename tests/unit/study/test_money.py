"""A deployment in money: the article's 70B, utilisation, pools, APIs."""

import sys
import types
from pathlib import Path

import pytest
from conftest import ROOT

from sim.__main__ import main
from sim.errors import ConfigError
from sim.experiment import load_experiment
from sim.profiles.apis import from_genai_prices
from sim.profiles.folders import names
from sim.profiles.library import load_apis, load_model
from sim.report import cost as report
from sim.study.money import money_of

SMALL = """
model: meta-llama/Llama-3.1-8B-Instruct
deployment: {gpu: L40S, replicas: 2}
workload: {arrivals: {kind: poisson, rate: 4}, lengths: {kind: fixed, input_tokens: 300, output_tokens: 60}, num_requests: 100}
prices: {gpu_hour_usd: 1.0}
costs: {staff_share: 0, monitoring_usd_per_month: 0, network_usd_per_month: 0, load_factor: 0.5}
"""  # noqa: E501


@pytest.fixture(scope="module")
def article():
    return money_of(load_experiment(ROOT / "experiments" / "70b_self_hosted.yaml"))


@pytest.fixture
def small(tmp_path: Path):
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    return lambda *overrides: money_of(load_experiment(path, overrides))


def test_the_articles_70b_costs_about_20_000_a_month(article):
    bill = next(bill for bill in article.bills if bill.scheme == "reserved")
    assert bill.items["accelerators"] == pytest.approx(15_840, rel=0.001)
    assert bill.items["staff"] == pytest.approx(200_000 * 0.2 / 12)
    assert bill.total_usd == pytest.approx(20_000, rel=0.05)


def test_a_tenth_of_saturation_costs_ten_times_as_much_by_the_token(article):
    costs = {point["utilization"]: point["usd_per_mtok_output"] for point in article.at_utilization()}
    assert costs[0.1] == pytest.approx(10 * costs[1.0])
    assert 0.05 < article.utilization < 0.2
    unit = article.best.unit_prices(article.month, article.rates.prefill_share)
    assert costs[article.utilization] == pytest.approx(unit.all_on_output)


def test_the_break_even_is_a_spreadsheets(article):
    groq = article.apis[0]
    assert groq.name == "groq llama-3.3-70b-versatile"
    month, own = article.month, article.best.total_usd
    list_usd = month.input_mtok * 0.59 + month.output_mtok * 0.79
    assert groq.usd == pytest.approx(1.2 * list_usd)
    assert groq.break_even_mtok == pytest.approx(own / (1.2 * list_usd) * (month.input_mtok + month.output_mtok))


def test_the_table_shows_what_a_buyer_has_to_know(article, capsys):
    report.show(article.as_dict(), "table")
    shown = capsys.readouterr().out
    for text in ("16 accelerators", "(yours)", "published rule", "stay with the API", "hybrid:", "reserved"):
        assert text in shown
    assert max(map(len, shown.splitlines())) < 160


def test_rent_and_the_cost_of_a_token(small):
    money = small("costs.apis={own: {input_usd_per_mtok: 1, output_usd_per_mtok: 2}}")
    rent = next(bill for bill in money.bills if bill.scheme == "rent")
    assert rent.items["accelerators"] == 2 * 730
    assert money.month.output_mtok == pytest.approx(0.5 * money.rates.output_tok_s * 730 * 3.6e-3)
    assert money.apis[0].usd == pytest.approx(money.month.input_mtok + 2 * money.month.output_mtok)
    assert 0 < money.rates.prefill_share < 1
    assert any("purchase" in note for note in money.notes), "nobody published what an L40S costs"


def test_spare_replicas_cost_and_serve_nothing(small):
    one, two = small(), small("costs.spare_replicas=2")
    assert two.fleet.gpus == one.fleet.gpus + 2
    assert two.best.total_usd == 2 * one.best.total_usd
    assert two.month.output_mtok == one.month.output_mtok
    assert two.month.energy_kwh > one.month.energy_kwh


def test_pools_of_unlike_accelerators_are_added_up(small):
    money = small("pools=[{gpu: L40S}, {gpu: H100, replicas: 1}]", "prices.gpu_hour_usd={L40S: 1, H100: 3}")
    assert money.best.items["accelerators"] == (2 * 1 + 3) * 730
    assert money.fleet.limit_w == 2 * 350 + 700


def test_an_api_that_nobody_knows_is_the_users_error(small):
    with pytest.raises(ConfigError, match=r"costs.compare.*grok llama-3.1-8b-instant.*did you mean.*groq"):
        small("costs.compare=[grok llama-3.1-8b-instant]")


def test_self_hosting_may_be_given(small):
    assert small("costs.self_hosting_given=true").answer == "self-host: it is given"


def test_without_a_price_there_is_no_bill(small):
    with pytest.raises(ConfigError, match="gpu_hour_usd"):
        small("prices={}", "deployment.gpu=A40")


@pytest.mark.parametrize("name", names("apis"))
def test_every_list_of_apis_is_of_models_that_are_known(name):
    offers = load_apis(name)
    for model in () if name == "frontier" else (offers.name, *offers.aliases):
        assert load_model(model).name == model


def test_prices_of_the_package_if_it_is_there(monkeypatch):
    def calc_price(usage, model, provider_id):
        if model != "known":
            raise LookupError
        return types.SimpleNamespace(input_price=usage.input_tokens * 2e-6, output_price=usage.output_tokens * 8e-6)

    package = types.SimpleNamespace(Usage=types.SimpleNamespace, calc_price=calc_price)
    monkeypatch.setitem(sys.modules, "genai_prices", package)
    price = from_genai_prices("someone known")
    assert (price.input_usd_per_mtok, price.output_usd_per_mtok) == pytest.approx((2, 8))
    assert from_genai_prices("someone unknown") is None
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert from_genai_prices("someone known") is None


def test_an_autoscaler_rents_what_it_keeps_and_buys_what_it_may_have(small):
    scaled = ("autoscaler={kind: queue_depth, target: 1, max_replicas: 4, interval_s: 1, lag_s: 0}",)
    money = small(*scaled, "lifecycle.cold_start_s=1", "prices.reserved_gpu_hour_usd=0.5")
    bills = {bill.scheme: bill.items["accelerators"] for bill in money.bills if "accelerators" in bill.items}
    assert money.fleet.gpus == 4
    assert bills["reserved"] == pytest.approx(4 * 0.5 * 730)
    assert 2 * 730 < bills["rent"] < 4 * 730
    assert money.capacity_mtok == pytest.approx(small("deployment.replicas=4").capacity_mtok)


@pytest.mark.parametrize(
    "overrides",
    [
        ("admission={kind: token_bucket, rate: 2, burst: 2}",),
        ("workload.patience={mean_s: 2}",),
        ("engine.scheduler={kind: chunked_prefill, max_num_queued_reqs: 1}", "engine.queue_timeout_s=1"),
    ],
)
def test_saturation_is_of_the_machines_and_not_of_who_is_turned_away(small, overrides):
    assert small(*overrides).capacity_mtok == pytest.approx(small().capacity_mtok)


def test_what_nobody_answers_has_no_price(small):
    with pytest.raises(ConfigError, match="workload: no request was answered"):
        small("workload.patience={mean_s: 0.001}")


def test_a_search_is_pointed_to_where_its_costs_are(tmp_path: Path, capsys):
    path = tmp_path / "searched.yaml"
    path.write_text(SMALL + "search: {kind: cheapest, gpus: [L40S]}\n")
    assert main(["cost", str(path)]) == 0
    assert "`python -m sim report` prices what `search:` finds" in capsys.readouterr().err
    assert main(["cost", str(path), "--set", "model=meta-llama/Llama-3.3-70B-Instruct"]) == 3
    assert "; or what `search:` finds, with `python -m sim report`" in capsys.readouterr().err
