"""What the accelerators of a run cost by each scheme: rented, reserved or bought."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sim.experiment import Experiment
from sim.metrics.pools import PoolSummary
from sim.profiles.prices import CardPrice, GpuPrice
from sim.simulate import Result
from sim.simulate.pools import ReadyPool
from sim.simulate.prices import gpu_price, purchase_price, reserved_price
from sim.tco.bill import Bill, bought, rented
from sim.tco.costs import Costs
from sim.tco.month import Fleet, Month

__all__ = ["bills_of", "fleet_of"]

_Price = Callable[[Experiment], GpuPrice | CardPrice | None]


def bills_of(
    experiment: Experiment, result: Result, fleet: Fleet, month: Month, notes: list[str]
) -> Iterator[Bill]:
    """Yield a bill by each scheme that has a price; the others leave a note in *notes*."""
    costs = experiment.costs
    for scheme, price in (("rent", gpu_price), ("reserved", reserved_price)):
        if (found := _together(result, price, costs, notes, scheme)) is not None:
            yield rented(scheme, found[1], found[0], costs)
    found = _together(result, purchase_price, costs, notes, "purchase")
    if found is None:
        return
    try:
        yield bought(found[1], found[0], fleet, month, experiment.prices.electricity_usd_per_kwh, costs)
    except ValueError as problem:
        notes.append(f"no bill for purchase: {problem}")


def _together(
    result: Result, price: _Price, costs: Costs, notes: list[str], scheme: str
) -> tuple[float, str] | None:
    """Return the price of all accelerators of the pools, and its origin; None, with a note, if one has no price."""
    usd, terms = 0.0, []
    for pool, summary in zip(result.pools, result.summary.pools, strict=True):
        found = price(pool.experiment)
        if found is None:
            notes.append(f"no bill for {scheme}: no such price of {pool.setup.hardware.name} is known")
            return None
        gpus = _paid_gpus(pool, summary, costs, scheme)
        usd += gpus * (found.usd if isinstance(found, CardPrice) else found.usd_per_hour)
        terms.append(f"{f'{gpus:,.2f}'.removesuffix('.00')} x {pool.setup.hardware.name} at {found.statement}")
    return usd, "; ".join(terms)


def _paid_gpus(pool: ReadyPool, summary: PoolSummary, costs: Costs, scheme: str) -> float:
    """Return how many accelerators of *pool* are paid for: who rents gives back what an autoscaler switches off."""
    gpus = pool.experiment.deployment.parallelism.gpus
    scaled = scheme == "rent" and pool.experiment.autoscaler is not None
    return (summary.num_gpus if scaled else pool.most_wanted * gpus) + costs.spare_replicas * gpus


def fleet_of(result: Result, costs: Costs) -> Fleet:
    """Return the accelerators of all pools with their spare ones, which stand idle."""
    gpus, limit_w, idle_w, busy_w = 0, 0.0, 0.0, 0.0
    known = True
    for pool, summary in zip(result.pools, result.summary.pools, strict=True):
        deployment = pool.experiment.deployment
        own = pool.most_wanted * deployment.parallelism.gpus
        spare = costs.spare_replicas * deployment.parallelism.gpus
        gpus += own + spare
        if summary.power is None or summary.power_w is None or pool.setup.hardware.tdp_w is None:
            known = False
            continue
        limit_w += (own + spare) * pool.setup.hardware.tdp_w
        idle_w += (own + spare) * summary.power.idle_w
        busy_w += summary.power_w + max(own + spare - summary.num_gpus, 0) * summary.power.idle_w
    return Fleet(gpus, limit_w, idle_w, busy_w) if known else Fleet(gpus)
