"""Published prices, and which of them an experiment gets."""

import re

import pytest

from sim.errors import ConfigError
from sim.experiment import load_experiment
from sim.profiles.folders import names
from sim.profiles.library import load_hardware, load_prices
from sim.profiles.prices import RENTED
from sim.simulate import simulate
from sim.simulate.prices import gpu_price

EXPERIMENT = """
model: meta-llama/Llama-3.1-8B-Instruct
deployment: {gpu: H100}
workload: {arrivals: {kind: constant, rate: 2}, lengths: {kind: fixed, input_tokens: 100, output_tokens: 20}, num_requests: 10}
"""  # noqa: E501


@pytest.fixture
def experiment(tmp_path):
    path = tmp_path / "e.yaml"
    path.write_text(EXPERIMENT)
    return lambda *overrides: load_experiment(path, overrides)


@pytest.mark.parametrize("name", names("prices"))
def test_every_price_is_of_a_known_accelerator_and_has_a_date(name):
    prices = load_prices(name)
    for gpu in (prices.name, *prices.aliases):
        assert load_hardware(gpu).name == gpu
    assert prices.offer(*RENTED) is not None, "nothing to take by default"
    for offer in prices.offers:
        assert re.match(r"20\d\d(-\d\d(-\d\d)?)?$", offer.date), offer
        low, high = offer.range_usd or (offer.usd, offer.usd)
        assert low <= offer.usd <= high
        assert (offer.usd > 1000) == (offer.kind == "purchase"), offer


def test_the_published_price_is_the_default_and_says_so(experiment):
    price = gpu_price(experiment())
    assert price.usd_per_hour == 3.13
    assert price.statement == "$3.13 per GPU-hour (default: on demand, average of 47 providers, 2026-06-28)"
    assert price.as_dict() == {
        "gpu_hour_usd": 3.13,
        "default": True,
        "kind": "on_demand",
        "provider": "average of 47 providers",
        "date": "2026-06-28",
        "source": "GetDeploying, quoted by cerevisor.pages.dev",
    }


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (["prices.gpu_hour_usd=2"], 2),
        (["prices.gpu_hour_usd={H100-SXM: 2.25, L40S: 1}"], 2.25),  # by an alias
        (["prices.gpu_hour_usd={L40S: 1}"], 3.13),
        (["prices.kind=reserved"], 1.78),
        (["prices.kind=tco"], 1.55),
        (["deployment.gpu=L4", "prices.kind=reserved"], None),  # nobody published one
        (["deployment.gpu=Gaudi-2"], None),
        (["deployment.gpu=B300"], 2.26),  # no rent is known
    ],
)
def test_which_price_counts(experiment, overrides, expected):
    price = gpu_price(experiment(*overrides))
    assert (None if price is None else price.usd_per_hour) == expected


def test_another_accelerator_of_the_same_experiment(experiment):
    assert gpu_price(experiment("prices.gpu_hour_usd={L40S: 1}"), "L40S").usd_per_hour == 1


def test_an_unknown_accelerator_is_the_users_error(experiment):
    with pytest.raises(ConfigError, match=r"prices.gpu_hour_usd.*L4OS.*did you mean"):
        gpu_price(experiment("prices.gpu_hour_usd={L4OS: 1}"))


def test_a_run_has_cost_and_power_without_being_told_prices(experiment):
    given = experiment()
    result = simulate(given).summary.as_dict()
    assert result["cost_usd_per_mtok_output"] == pytest.approx(3.13 / 3600 * result["duration"] / (200 / 1e6))
    assert result["price"]["default"]
    assert 0.115 * 700 < result["gpu_power_w"] < 700
    assert result["facility_power_w"] == pytest.approx(result["gpu_power_w"] * 1.38 * 1.21)
    assert result["energy_j_per_output_tok"] == pytest.approx(result["gpu_power_w"] * result["duration"] / 200)
