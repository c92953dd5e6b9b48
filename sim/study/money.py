"""What an experiment's deployment costs a month, by the token, and against others' APIs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sim.experiment import Experiment
from sim.simulate import Result, simulate
from sim.simulate.pools import ReadyPool
from sim.simulate.time_use import prefill_share
from sim.study.bills import bills_of, fleet_of
from sim.study.offers import hybrid_of, offers_for
from sim.study.saturation import saturated
from sim.tco.api import ApiBill, api_bill, published_rule
from sim.tco.bill import Bill
from sim.tco.month import Fleet, Month, Rates, load_factor

__all__ = ["Money", "money_of"]

_UTILIZATIONS = (1.0, 0.5, 0.3, 0.1)
_FOLLOW_THE_DAY = ("diurnal", "trace")


@dataclass(frozen=True, slots=True)
class Money:
    """A deployment's month in money.

    Attributes
    ----------
    rates
        Tokens a second under the load of the experiment.
    load, load_from
        Mean load of the month over the experiment's, and what says so.
    saturated
        Tokens a second if requests always waited; None: the lengths are not apart from the arrivals.
    bills
        By scheme, the cheapest first; at least one.
    apis
        Bills of others for the same month.
    hybrid
        Cost of the month with a share at a frontier API [$], if the experiment asks for it.
    notes
        What is missing, and why.
    """

    experiment: Experiment
    rates: Rates
    load: float
    load_from: str
    month: Month
    fleet: Fleet
    saturated: Rates | None
    bills: tuple[Bill, ...]
    apis: tuple[ApiBill, ...]
    hybrid: dict[str, Any] | None
    notes: tuple[str, ...]

    @property
    def best(self) -> Bill:
        """The cheapest scheme's bill."""
        return self.bills[0]

    @property
    def utilization(self) -> float | None:
        """Tokens of answers in the month over those of a saturated deployment; None: not known."""
        if self.saturated is None or not self.saturated.output_tok_s:
            return None
        return self.rates.output_tok_s * self.load / self.saturated.output_tok_s

    @property
    def capacity_mtok(self) -> float:
        """Tokens of prompts and answers that the deployment can serve in a month [millions]."""
        return Month.at(self.saturated or self.rates, 1.0, self.fleet, self.experiment.costs).total_mtok

    def at_utilization(self) -> list[dict[str, float]]:
        """Return the cheapest scheme's cost by the million output tokens at several shares of saturation."""
        full = self.saturated or self.rates
        mtok = Month.at(full, 1.0, self.fleet, self.experiment.costs).output_mtok
        shares = sorted({*_UTILIZATIONS, *filter(None, [self.utilization])}, reverse=True)
        usd = self.best.total_usd
        return [{"utilization": share, "usd_per_mtok_output": usd / (mtok * share)} for share in shares if mtok]

    @property
    def answer(self) -> str:
        """Whether to host it oneself, by the computed figures."""
        if self.experiment.costs.self_hosting_given:
            return "self-host: it is given"
        if not self.apis:
            return "no API price is known to compare with"
        cheapest = min(self.apis, key=lambda api: api.usd)
        own = self.best.total_usd
        if own < cheapest.usd:
            return f"self-host: ${own:,.0f} a month against ${cheapest.usd:,.0f} at {cheapest.name}"
        return f"use an API: {cheapest.name} charges ${cheapest.usd:,.0f} a month against ${own:,.0f} of one's own"

    def as_dict(self) -> dict[str, Any]:
        """Return it under its public keys."""
        return {
            "name": self.experiment.name,
            "gpus": self.fleet.gpus,
            "load_factor": self.load,
            "load_factor_from": self.load_from,
            "utilization": self.utilization,
            "month": asdict(self.month),
            "capacity_mtok": self.capacity_mtok,
            "prefill_share": self.rates.prefill_share,
            "schemes": [self._scheme(bill) for bill in self.bills],
            "cost_at_utilization": self.at_utilization(),
            "apis": [asdict(api) for api in self.apis],
            "horizon_years": self.experiment.costs.amortisation_years,
            "hybrid": self.hybrid,
            "answer": self.answer,
            "published_rule": published_rule(min(api.usd for api in self.apis)) if self.apis else None,
            "notes": list(self.notes),
        }

    def _scheme(self, bill: Bill) -> dict[str, Any]:
        unit = bill.unit_prices(self.month, self.rates.prefill_share)
        return {
            "scheme": bill.scheme,
            "terms": bill.terms,
            "items_usd": bill.items,
            "total_usd": bill.total_usd,
            "usd_per_mtok_input": unit.input,
            "usd_per_mtok_output": unit.output,
            "usd_per_mtok_blended": unit.blended,
            "cost_usd_per_mtok_output": unit.all_on_output,
        }


def money_of(experiment: Experiment, result: Result | None = None) -> Money:
    """Return what *experiment* costs; *result* is its run, if there is one already.

    Raises
    ------
    ConfigError
        If no price of the accelerators is known, or an API is not, or nothing was answered that could cost anything.
    """
    result = result or simulate(experiment)
    if not result.summary.served.completed:
        raise experiment.error("workload", "no request was answered, so that there is nothing to price")
    full = saturated(experiment, result.pools)
    costs, notes = experiment.costs, list(_scaled_notes(result.pools))
    load, load_from = _load(experiment)
    fleet, rates = fleet_of(result, costs), _rates(result)
    month = Month.at(rates, load, fleet, costs)
    bills = tuple(sorted(bills_of(experiment, result, fleet, month, notes), key=lambda bill: bill.total_usd))
    if not bills:
        raise experiment.error("prices", f"give gpu_hour_usd: no price of {experiment.deployment.gpu} is known")
    own_usd = bills[0].total_usd
    apis = tuple(api_bill(name, price, own_usd, month, costs) for name, price in offers_for(experiment, notes))
    return Money(
        experiment=experiment,
        rates=rates,
        load=load,
        load_from=load_from,
        month=month,
        fleet=fleet,
        saturated=None if full is None else _rates(full),
        bills=bills,
        apis=apis,
        hybrid=hybrid_of(experiment, own_usd, month),
        notes=tuple(notes),
    )


def _load(experiment: Experiment) -> tuple[float, str]:
    costs, arrivals = experiment.costs, experiment.workload.arrivals
    if costs.load_factor is not None:
        return costs.load_factor, "costs.load_factor"
    if arrivals.kind in _FOLLOW_THE_DAY:
        return 1.0, f"the {arrivals.kind} arrivals themselves"
    shape = "costs.hourly_rate" if "hourly_rate" in costs.model_fields_set else "a university's day (RAGPulse)"
    return load_factor(costs.hourly_rate), f"mean over peak hour of {shape}, the experiment being the peak"


def _rates(result: Result) -> Rates:
    summary = result.summary
    shares = [
        (prefill_share(pool.context(result.strides).strides(result.strides), pool.setup.engine.cost), of.busy_share)
        for pool, of in zip(result.pools, summary.pools, strict=True)
    ]
    busy = sum(weight for _, weight in shares)
    return Rates(
        input_tok_s=summary.served.input_tok_s,
        output_tok_s=summary.served.output_tok_s,
        cached_tok_s=summary.served.input_tok_s * min(summary.kv.prefix_hit_rate, 1.0),
        prefill_share=sum(share * weight for share, weight in shares) / busy if busy else 0.0,
    )


def _scaled_notes(pools: Sequence[ReadyPool]) -> Iterator[str]:
    if any(pool.experiment.autoscaler is not None for pool in pools):
        yield (
            "rent is of the accelerators that the autoscaler kept under the experiment's load, on average, all month;"
            " the other schemes pay for the most that it may have"
        )
