"""What the accelerators of an experiment cost."""

from __future__ import annotations

from functools import partial

from sim.errors import ProfileError
from sim.experiment import Experiment
from sim.profiles.library import load_hardware, load_prices
from sim.profiles.prices import RENTED, CardPrice, GpuPrice, Offer, PriceKind, PriceList
from sim.simulate.profiles import named

__all__ = ["gpu_price", "price_list", "purchase_price", "reserved_price"]


def gpu_price(experiment: Experiment, gpu: str | None = None) -> GpuPrice | None:
    """Return the price by the hour of *gpu* (missing: the deployment's): the experiment's, else the published default.

    Returns
    -------
    GpuPrice | None
        None if the experiment gives none and none was published.

    Raises
    ------
    ConfigError
        If ``prices.gpu_hour_usd`` names an accelerator that nobody knows.
    """
    kinds = RENTED if experiment.prices.kind is None else (experiment.prices.kind,)
    found = _price(experiment, gpu, "gpu_hour_usd", kinds)
    return None if found is None else GpuPrice(*found)


def reserved_price(experiment: Experiment, gpu: str | None = None) -> GpuPrice | None:
    """Return the price by the hour with a long commitment, as `gpu_price` does."""
    found = _price(experiment, gpu, "reserved_gpu_hour_usd", ("reserved",))
    return None if found is None else GpuPrice(*found)


def purchase_price(experiment: Experiment, gpu: str | None = None) -> CardPrice | None:
    """Return the price of buying one accelerator without its server, as `gpu_price` does."""
    found = _price(experiment, gpu, "purchase_usd", ("purchase",))
    return None if found is None else CardPrice(*found)


def _price(
    experiment: Experiment, gpu: str | None, field: str, kinds: tuple[PriceKind, ...]
) -> tuple[float, Offer | None] | None:
    gpu = gpu or experiment.deployment.gpu
    written = getattr(experiment.prices, field)
    if isinstance(written, dict):
        written = _by_name(experiment, field, written).get(load_hardware(gpu, experiment.folder).name)
    if written is not None:
        return written, None
    prices = price_list(experiment, gpu)
    offer = prices.offer(*kinds) if prices is not None else None
    return None if offer is None else (offer.usd, offer)


def price_list(experiment: Experiment, gpu: str) -> PriceList | None:
    """Return what was published for *gpu*; None if nothing was."""
    try:
        return load_prices(load_hardware(gpu, experiment.folder).name, experiment.folder)
    except ProfileError as problem:
        if problem.file is not None:
            raise
        return None


def _by_name(experiment: Experiment, field: str, written: dict[str, float]) -> dict[str, float]:
    """Return the prices by the accelerators' own names instead of aliases."""
    load = partial(load_hardware, beside=experiment.folder)
    return {named(experiment, f"prices.{field}", partial(load, name)).name: usd for name, usd in written.items()}
