"""All that a report shows beside the answer of a search: load curve, frontier, memory, sensitivity, money."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from typing import Any

from ruamel.yaml import YAML

from sim.experiment import Experiment
from sim.memory import MemoryPlan
from sim.search.cheapest import Cheapest
from sim.simulate import prepare, simulate
from sim.study.answer import CheapestAnswer
from sim.study.laboratory import Laboratory, altered, with_requests
from sim.study.load import Load, lengths_of, load_of
from sim.study.measure import Measured
from sim.study.money import money_of
from sim.sweep import Settings
from sim.workload.arrivals.closed_loop import ClosedLoopArrivals

__all__ = ["NOT_MODELLED", "dossier_of"]

_LOADS = (0.25, 0.5, 0.75, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.5)
"""Points of the load curve, as shares of the peak."""
_TURNS = 15
"""Requests of each user at a point of the load curve, at least."""
_RAMPS = 6
"""Length of such a run, over the time in which its users begin, at least: two of these are not counted."""
_MOST_REQUESTS = 20_000
"""Most requests of such a run, which takes seconds."""
_IN_FLIGHT = (1, 4, 16, 48, 96, 160)
"""Points of the frontier: requests always in flight on one replica."""
_FRONTIER_REQUESTS = 4
_CHANGE = 0.25
_HOPELESS = 20.0
"""The load curve ends where the first token takes so many times its bound."""

NOT_MODELLED = (
    "the quality of answers: which precision is good enough is for your own tests to say",
    "the machines are taken to be up: failures, start-up and spare replicas are for a run with `failures:`",
    "upgrades and maintenance windows",
    "networks between your users and the server, gateways, guardrails and retrieval",
    "changes of engine versions: constants are of the versions named in the assumptions",
)


def dossier_of(experiment: Experiment, answer: CheapestAnswer, laboratory: Laboratory) -> dict[str, Any]:
    """Return everything that the report of *answer* shows, as plain data.

    Raises
    ------
    UserError
        As `simulate` does.
    """
    assert isinstance(experiment.search, Cheapest)
    best, search = answer.best, experiment.search
    load = load_of(experiment, None, search.users, search.peak_factor, lengths_of(experiment))
    fleet: Settings = {**best.settings, "deployment.replicas": best.replicas}
    chosen = altered(experiment, {**fleet, **load.settings(load.peak)})
    result = simulate(chosen)
    memory = [bar for each in answer.alternatives if (bar := _memory(experiment, each.gpu, each.label, each.settings))]
    return {
        "answer": answer.as_dict(),
        "curve": {
            "load_words": load.words,
            "peak": load.peak,
            "mean": load.amount,
            "points": list(_curve(experiment, fleet, load, laboratory)),
        },
        "frontier": list(_frontier(experiment, answer)),
        "memory": memory,
        "sensitivity": list(_effects(experiment, fleet, load, laboratory)),
        "money": money_of(_priced(chosen, load, best.spare), result).as_dict(),
        "assumptions": list(_assumptions(experiment, answer, result.summary.warnings)),
        "not_modelled": list(NOT_MODELLED),
        "yaml": _yaml(experiment, {**fleet, **load.settings(load.peak)}),
    }


def _priced(chosen: Experiment, load: Load, spare: int) -> Experiment:
    """Return the *chosen* deployment as it is paid for: its run is the peak, and *spare* replicas stand by."""
    settings: Settings = {"costs.spare_replicas": chosen.costs.spare_replicas + spare}
    if "load_factor" not in chosen.costs.model_fields_set and load.peak > load.amount:
        settings = {**settings, "costs.load_factor": load.amount / load.peak}
    return altered(chosen, settings)


def _curve(experiment: Experiment, fleet: Settings, load: Load, laboratory: Laboratory) -> Iterator[dict[str, Any]]:
    """Yield the latencies of the chosen fleet under shares of the peak load, up to where they are hopeless."""
    for share in _LOADS:
        amount = share * load.peak
        run = _long_run(altered(experiment, {**fleet, **load.settings(amount)}), laboratory)
        assert experiment.slo is not None
        values = {clause.name: 1e3 * run.values_s[clause.name] for clause in experiment.slo.clauses}
        low_high = {clause.name: [1e3 * end for end in run.interval_s(clause)] for clause in experiment.slo.clauses}
        yield {"load": amount, "values_ms": values, "intervals_ms": low_high, "tok_s": run.output_tok_s}
        bounds = {clause.name: 1e3 * clause.bound_s for clause in experiment.slo.clauses}
        if run.overloaded or any(values[name] > _HOPELESS * bound for name, bound in bounds.items()):
            return


def _long_run(experiment: Experiment, laboratory: Laboratory) -> Measured:
    """Run *experiment*; a closed loop for so long that its steady part outweighs its ramp and drain, if that may be."""
    run, arrivals, requests = laboratory.run(experiment), experiment.workload.arrivals, experiment.workload.num_requests
    if not isinstance(arrivals, ClosedLoopArrivals) or requests is None:
        return run
    during_ramps = math.ceil(_RAMPS * arrivals.ramp_s * run.requests_per_s)
    wanted = min(max(_TURNS * arrivals.concurrency, during_ramps), _MOST_REQUESTS)
    return run if wanted <= requests else laboratory.run(with_requests(experiment, wanted))


def _frontier(experiment: Experiment, answer: CheapestAnswer) -> Iterator[dict[str, Any]]:
    """Yield speed for a user against throughput of a GPU, of one replica of each alternative."""
    for each in answer.alternatives:
        for count in _IN_FLIGHT:
            arrivals = {"kind": "closed_loop", "concurrency": count}
            requests = {"workload.arrivals": arrivals, "workload.num_requests": max(16, _FRONTIER_REQUESTS * count)}
            alone = altered(experiment, {**each.settings, "deployment.replicas": 1, **requests})
            summary = simulate(alone).summary
            values = summary.as_dict()
            if not values["mean_tpot_ms"]:
                continue
            yield {
                "gpu": each.gpu,
                "label": each.label,
                "in_flight": count,
                "tok_s_user": 1e3 / values["mean_tpot_ms"],
                "tok_s_gpu": values["output_tok_s_per_gpu"],
                "ttft_ms": values["median_ttft_ms"],
                "usd_per_mtok": values["cost_usd_per_mtok_output"],
                "binding_limit": values["binding_limit"],
            }


def _memory(experiment: Experiment, gpu: str, label: str, settings: Settings) -> dict[str, Any] | None:
    memory = prepare(altered(experiment, settings)).memory
    return None if memory is None else {"gpu": gpu, "label": label, "parts_bytes": _parts(memory)}


def _parts(memory: MemoryPlan) -> dict[str, float]:
    rank = memory.ranks[0]
    parts = {
        "weights": rank.weights_bytes,
        "KV cache": rank.kv_bytes,
        "activations": rank.activation_bytes,
        "framework": rank.non_torch_bytes + rank.cuda_graph_bytes + rank.state_bytes,
    }
    return {**parts, "left free": max(0.0, rank.visible_bytes - sum(parts.values()))}


def _effects(experiment: Experiment, fleet: Settings, load: Load, laboratory: Laboratory) -> Iterator[dict[str, Any]]:
    """Yield what a change of one thing does to the chosen fleet at its peak."""
    assert experiment.slo is not None
    for what, *ends in _changes(experiment, load):
        row: dict[str, Any] = {"what": what}
        for end, (settings, slower) in zip(("low_ms", "high_ms"), ends, strict=True):
            run = laboratory.run(altered(experiment, {**fleet, **load.settings(load.peak), **settings}))
            row[end] = {clause.name: 1e3 * slower * run.values_s[clause.name] for clause in experiment.slo.clauses}
        yield row


_Change = tuple[Settings, float]
"""Settings, and what latencies are multiplied with afterwards."""


def _changes(experiment: Experiment, load: Load) -> Iterator[tuple[str, _Change, _Change]]:
    """Yield what is changed, with both ends of the change."""
    less, more = 1 - _CHANGE, 1 + _CHANGE
    yield f"peak load -/+ {_CHANGE:.0%}", (load.settings(less * load.peak), 1), (load.settings(more * load.peak), 1)
    lengths = experiment.workload.lengths
    for field, words in (("input_tokens", "prompts"), ("output_tokens", "answers")):
        written = getattr(lengths, field, None)
        if isinstance(written, int):
            path = f"workload.lengths.{field}"
            yield f"{words} -/+ {_CHANGE:.0%}", ({path: round(less * written)}, 1), ({path: round(more * written)}, 1)
    fast, slow = (load.settings(load.peak, slower=factor) for factor in (less, more))
    yield f"time of an iteration -/+ {_CHANGE:.0%}", (fast, less), (slow, more)


def _assumptions(experiment: Experiment, answer: CheapestAnswer, warnings: tuple[str, ...]) -> Iterator[dict[str, str]]:
    best = answer.best
    costs, prices = experiment.costs, experiment.prices
    yield {"what": "errors of the model", "value": answer.best.peak.statement, "source": "profiles/calibrated/errors"}
    yield {"what": "price", "value": best.price, "source": "profiles/prices"}
    kind = experiment.engine.kind
    yield {"what": "engine", "value": f"{kind} {experiment.engine.version}", "source": f"profiles/engines/{kind}.yaml"}
    power = f"servers x {costs.server_power_factor:g}, PUE {costs.pue:g}"
    yield {"what": "power", "value": f"{power}; boards 4 to 13 % off", "source": "profiles/calibrated/power"}
    electricity = f"${prices.electricity_usd_per_kwh:g}/kWh, {costs.carbon_kg_per_kwh:g} kg CO2/kWh"
    yield {"what": "electricity", "value": electricity, "source": "EIA 2025; Ember 2024"}
    for warning in warnings:
        if warning == best.peak.statement:
            continue
        yield {"what": "warning of the run", "value": warning, "source": "the simulation"}


def _yaml(experiment: Experiment, settings: Settings) -> str:
    """Return the experiment with *settings*, as it is run again."""
    document = experiment.document_for(settings)
    for path, value in settings.items():
        document = document.replace(path, value, path)
    data = document.without("search").without("sweep").data
    yaml = YAML()
    yaml.width = 100
    text = io.StringIO()
    yaml.dump({key: value for key, value in data.items() if value is not None}, text)
    return text.getvalue()
