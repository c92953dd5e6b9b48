"""What an hour of an accelerator costs in an experiment."""

from __future__ import annotations

from sim.errors import ProfileError
from sim.experiment import Experiment
from sim.profiles.library import load_hardware, load_prices
from sim.profiles.prices import RENTED, GpuPrice, PriceList

__all__ = ["gpu_price", "price_list"]


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
    gpu = gpu or experiment.deployment.gpu
    written = experiment.prices.gpu_hour_usd
    if isinstance(written, dict):
        written = _by_name(experiment, written).get(load_hardware(gpu, experiment.folder).name)
    if written is not None:
        return GpuPrice(written)
    prices = price_list(experiment, gpu)
    kinds = RENTED if experiment.prices.kind is None else (experiment.prices.kind,)
    offer = prices.offer(*kinds) if prices is not None else None
    return None if offer is None else GpuPrice(offer.usd, offer)


def price_list(experiment: Experiment, gpu: str) -> PriceList | None:
    """Return what was published for *gpu*; None if nothing was."""
    try:
        return load_prices(load_hardware(gpu, experiment.folder).name, experiment.folder)
    except ProfileError as problem:
        if problem.file is not None:
            raise
        return None


def _by_name(experiment: Experiment, written: dict[str, float]) -> dict[str, float]:
    """Return the prices by the accelerators' own names instead of aliases."""
    named = {}
    for name, usd in written.items():
        try:
            named[load_hardware(name, experiment.folder).name] = usd
        except ProfileError as problem:
            if problem.file is not None:
                raise
            raise experiment.error("prices.gpu_hour_usd", problem.message) from None
    return named
