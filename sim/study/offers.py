"""What others charge for the tokens of a month."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sim.errors import ProfileError, did_you_mean
from sim.experiment import Experiment
from sim.profiles.apis import ApiPrice, from_genai_prices
from sim.profiles.folders import names
from sim.profiles.library import load_apis
from sim.tco.api import api_usd, break_even_mtok, hybrid_usd
from sim.tco.month import Month

__all__ = ["hybrid_of", "offers_for"]


def offers_for(experiment: Experiment, notes: list[str]) -> Iterator[tuple[str, ApiPrice]]:
    """Yield the user's own prices, the published ones for the model, and those that are asked for."""
    costs, listed = experiment.costs, list[str]()
    yield from costs.apis.items()
    try:
        offers = load_apis(experiment.model, experiment.folder)
        listed = [offer.title for offer in offers.offers]
        yield from ((offer.title, offer) for offer in offers.offers)
        notes.append(f"API prices of {offers.date}: {offers.sources['all']}")
    except ProfileError as problem:
        if problem.file is not None:
            raise
        notes.append(f"no published API price of {experiment.model}: give your own in costs.apis")
    for title in costs.compare:
        if title not in listed:
            yield title, _api(experiment, title, "costs.compare")


def _api(experiment: Experiment, title: str, path: str) -> ApiPrice:
    """Return the price that is called *title*; raise `ConfigError` where nobody knows it."""
    if title in experiment.costs.apis:
        return experiment.costs.apis[title]
    known: dict[str, ApiPrice] = {}
    for name in names("apis", experiment.folder):
        known |= {offer.title: offer for offer in load_apis(name, experiment.folder).offers}
    price = known.get(title) or from_genai_prices(title)
    if price is None:
        raise experiment.error(path, f"no API price {title!r} is known{did_you_mean(title, list(known))}")
    return price


def hybrid_of(experiment: Experiment, own_usd: float, month: Month) -> dict[str, Any] | None:
    """Return the month with a share at an API, as public keys; None where the experiment asks for none."""
    hybrid, premium = experiment.costs.hybrid, experiment.costs.compliance_premium
    if hybrid is None:
        return None
    price = _api(experiment, hybrid.api, "costs.hybrid.api")
    all_there = api_usd(month, price, premium)
    even = break_even_mtok(own_usd, month, price, premium)
    return {
        "api": hybrid.api,
        "share": hybrid.share,
        "total_usd": hybrid_usd(own_usd, month, price, hybrid.share, premium),
        "all_at_api_usd": all_there,
        "break_even_mtok": even / (1 - hybrid.share) if hybrid.share < 1 else None,
    }
