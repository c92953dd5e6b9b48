"""A row of a file of serving benchmarks as an experiment, by stated rules; what they do not cover is refused."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

from calibration.cases.disaggregated import engine_case, is_disaggregated
from calibration.cases.names import model_name
from calibration.cases.not_modelled import IF_KNOWN, NotModelledError
from calibration.cases.serving import ServingCase
from calibration.experiment.deployment import deployment
from calibration.experiment.draft import OPEN_LOOP_REQUESTS, Draft
from calibration.experiment.engine import engine
from calibration.experiment.kernels import cost_model
from calibration.experiment.sent_before import found_again, sent_before
from calibration.experiment.workload import workload
from sim.errors import ConfigError, InfeasibleError
from sim.experiment import Experiment, experiment_of
from sim.profiles.library import load_model
from sim.profiles.model import Model
from sim.simulate import ReadyPool, ready_pools
from sim.yamlfile import Document

__all__ = ["Prepared", "experiment_of_case", "prepared_to_fit", "refuse_unstated"]

_ROOMIER = 0.95
_EXAMPLES = {"model": "NAME", "engine": "vllm", "gpu": "H100-SXM-80GB", "tp": "N"}


@dataclass(slots=True)
class Prepared:
    """The experiment of a case, and what had to be assumed for it."""

    experiment: Experiment
    assumed: list[str]


def experiment_of_case(
    case: ServingCase, open_loop_requests: int = OPEN_LOOP_REQUESTS, calibration: str | None = None
) -> Prepared:
    """Return the experiment that repeats the run of *case*, with so many requests of an open loop at most.

    *calibration*: see `EngineChoice`.

    Raises
    ------
    NotModelledError
        The row lacks something, or used what is not simulated; the text is the reason.
    """
    _refuse_unmodelled(case)
    if is_disaggregated(case):
        case = engine_case(case)
    draft = Draft(case, _model(case), open_loop_requests)
    data: dict[str, Any] = {
        "name": case.name,
        "model": model_name(case),
        **deployment(draft),
        **cost_model(draft),
        "engine": engine(draft) | ({"calibration": calibration} if calibration else {}),
        "workload": workload(draft),
    }
    experiment = _experiment(case, data)
    if sent_before(case) and (prefix := found_again(draft, experiment)):
        engine_with_hits = data["engine"] | {"prefix_caching": True}
        experiment = _experiment(case, data | {"engine": engine_with_hits, "workload": data["workload"] | prefix})
    return Prepared(experiment, draft.assumed)


def _experiment(case: ServingCase, data: dict[str, Any]) -> Experiment:
    try:
        return experiment_of(Document(data, f"case {case.name}", ConfigError, {}))
    except ConfigError as problem:
        raise NotModelledError(problem.message) from None


def prepared_to_fit(
    case: ServingCase, open_loop_requests: int = OPEN_LOOP_REQUESTS, calibration: str | None = None
) -> tuple[Prepared, list[ReadyPool]]:
    """Return the experiment of *case* made ready, as `experiment_of_case` makes it.

    The run took place, so that its model did fit: where that is by a hair, more memory than the default was used.

    Raises
    ------
    NotModelledError, UserError
        As `experiment_of_case` and `ready_pools` do.
    InfeasibleError
        If it does not fit even so.
    """
    prepared = experiment_of_case(case, open_loop_requests, calibration)
    try:
        return prepared, ready_pools(prepared.experiment)
    except InfeasibleError:
        if case.text("gpu_memory_utilization"):
            raise
    roomier = replace(case, row={**case.row, "gpu_memory_utilization": str(_ROOMIER)})
    prepared = experiment_of_case(roomier, open_loop_requests, calibration)
    prepared.assumed.append(f"gpu_memory_utilization {_ROOMIER}, since the run did fit")
    return prepared, ready_pools(prepared.experiment)


def _refuse_unmodelled(case: ServingCase) -> None:
    mode, quality = case.text("mode"), case.text("quality")
    if mode not in ("", "agg", "disagg"):
        raise NotModelledError(f"mode {mode} is not modelled")
    if quality in ("anomalous", "suspect"):
        raise NotModelledError(f"the source's numbers are {quality}")
    if not case.text("load_value"):
        raise NotModelledError("no load_value: the row sums up several loads")
    if "trace replay" in case.text("len_distribution"):
        raise NotModelledError("the trace that was replayed is not in the row")
    refuse_unstated(case)


def refuse_unstated(case: ServingCase) -> None:
    """Raise `NotModelledError` where *case* does not say what ran, with the options that would."""
    if unstated := [name for name in ("model", "engine", "gpu") if not case.text(name)] + _no_ranks(case):
        remedy = " ".join(f"--assume {name}={_EXAMPLES[name]}" for name in unstated)
        raise NotModelledError(f"not stated: {', '.join(unstated)}{IF_KNOWN}{remedy}")


def _no_ranks(case: ServingCase) -> list[str]:
    stated = is_disaggregated(case) or case.whole("tp") or case.whole("n_gpus")
    return [] if stated else ["tp"]


@functools.cache
def _known_model(path: str) -> Model:
    return load_model(path)


def _model(case: ServingCase) -> Model:
    return _known_model(model_name(case))
