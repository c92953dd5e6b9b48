"""How far predictions are off, by regime: the table from which ``run`` takes its intervals.

Per regime and latency the table has one factor: the 90 % quantile, over runs, of how far prediction and measurement are
apart, in the conformal way (the ceil(0.9 (n + 1))-th smallest of n), which is valid whatever the distribution, as long
as a new run is like the others: Vovk, Gammerman and Shafer, "Algorithmic Learning in a Random World" (2005), ch. 2.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibration.cases.disaggregated import is_disaggregated
from calibration.cases.names import gpu_of, version_of
from calibration.cases.serving import ServingCase
from sim.profiles.calibrated_errors import ErrorRegime, ErrorTable, Load

__all__ = ["Observed", "as_yaml", "coverage", "error_table", "observed_in"]

_SHARE = 0.9
_FEWEST = 20
"""Runs below which a regime takes the errors of a wider one."""
_FEWEST_MODELS = 2
"""The same of models: how far one is off says little of others."""
_MEASURED = {
    "ttft": ("ttft_mean_ms", "ttft_p50_ms"),
    "tpot": ("tpot_mean_ms", "itl_mean_ms", "tpot_p50_ms"),
    "e2el": ("e2e_mean_ms",),
    "throughput": ("output_tok_s", "total_tok_s"),
}


@dataclass(frozen=True, slots=True)
class Observed:
    """One run that was simulated without having been fitted, or with few of its kind among the fitted.

    *errors* holds ``|ln(predicted / measured)|`` by latency.
    """

    name: str
    engine: str
    gpu: str
    model: str
    load: Load
    input_tokens: float
    output_tokens: float
    running: float
    errors: Mapping[str, float]


def observed_in(cases: Sequence[ServingCase], answers: Sequence[Mapping[str, Any]]) -> Iterator[Observed]:
    """Yield the runs that serve requests under a load, once for each question, with their errors.

    Not those whose prompts and answers were on different replicas: of them no run takes its intervals.
    """
    seen = set()
    for case, answer in zip(cases, answers, strict=True):
        if answer["skipped"] is not None or is_disaggregated(case):
            continue
        if case.text("load_type") == "batch" or case.question in seen:
            continue
        seen.add(case.question)
        yield Observed(
            case.name,
            version_of(case, [])[0],
            gpu_of(case),
            case.text("model"),
            answer["load"],
            case.number("input_len") or 1.0,
            case.number("output_len") or 1.0,
            answer["running"],
            dict(_errors(case.measured, answer["predicted"], case.number("output_len") or 1.0)),
        )


def _errors(
    measured: Mapping[str, float], predicted: Mapping[str, float], answer_tokens: float
) -> Iterator[tuple[str, float]]:
    for name, metrics in _MEASURED.items():
        metric = next((metric for metric in metrics if metric in measured and metric in predicted), None)
        if metric is not None:
            yield name, abs(math.log(predicted[metric] / measured[metric]))
    parts = ("ttft_mean_ms", "tpot_mean_ms")
    if "e2e_mean_ms" not in measured and all(part in measured and part in predicted for part in parts):
        ends = [times[parts[0]] + times[parts[1]] * (answer_tokens - 1) for times in (predicted, measured)]
        yield "e2el", abs(math.log(ends[0] / ends[1]))


def error_table(runs: Iterable[Observed]) -> ErrorTable:
    """Return the factors of all regimes with enough runs."""
    groups: dict[tuple[str | None, str | None, Load | None], list[Observed]] = defaultdict(list)
    for run in runs:
        for engine, gpu in ((run.engine, run.gpu), (run.engine, None), (None, None)):
            for load in (run.load, None):
                groups[engine, gpu, load].append(run)
    regimes = [
        _regime(engine, gpu, load, found)
        for (engine, gpu, load), found in sorted(groups.items(), key=lambda item: tuple(map(str, item[0])))
        if (engine, gpu, load) == (None, None, None) or _tells(found)
    ]
    source = "differences between `validate` and the measured serving runs of its cases, fitted ones included"
    return ErrorTable(name="serving", sources={"all": source}, regimes=tuple(regimes))


def _tells(runs: Sequence[Observed]) -> bool:
    return len(runs) >= _FEWEST and len({run.model for run in runs}) >= _FEWEST_MODELS


def _regime(engine: str | None, gpu: str | None, load: Load | None, runs: Sequence[Observed]) -> ErrorRegime:
    errors: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        for name, error in run.errors.items():
            errors[name].append(error)
    fewest = min(_FEWEST, len(runs))
    factors = {name: math.exp(_quantile(found)) for name, found in errors.items() if len(found) >= fewest}
    factors.setdefault("e2el", max(factors.values()))
    factors.setdefault("throughput", factors["e2el"])
    factors.setdefault("itl", factors.get("tpot", factors["e2el"]))
    return ErrorRegime(
        engine=engine,
        gpus=() if gpu is None else (gpu,),
        load=load,
        rows=len(runs),
        factors={name: float(f"{factor:.4g}") for name, factor in sorted(factors.items())},
        max_input_tokens=max(run.input_tokens for run in runs),
        max_output_tokens=max(run.output_tokens for run in runs),
        max_running=max(run.running for run in runs),
    )


def _quantile(errors: Sequence[float]) -> float:
    """Return the conformal 90 % quantile; the largest error where there are too few for one."""
    ordered = sorted(errors)
    return ordered[min(len(ordered), math.ceil(_SHARE * (len(ordered) + 1))) - 1]


def coverage(runs: Sequence[Observed], group_of: Callable[[Observed], str]) -> dict[str, tuple[float, int]]:
    """Return by latency the share of runs inside intervals that were made without their group, and their number.

    *group_of* names what is left out at once: a half of all runs, a model, an accelerator.
    """
    inside: dict[str, list[bool]] = defaultdict(list)
    for group in sorted({group_of(run) for run in runs}):
        others = [run for run in runs if group_of(run) != group]
        if not others:
            continue
        table = error_table(others)
        for run in (run for run in runs if group_of(run) == group):
            regime = table.of(run.engine, run.gpu, run.load)
            assert regime is not None  # the regime of all runs fits any
            for name, error in run.errors.items():
                inside[name].append(error <= math.log(regime.factors.get(name, math.inf)))
    return {name: (100 * sum(found) / len(found), len(found)) for name, found in inside.items()}


def half_of(run: Observed) -> str:
    """Return in which of two random halves a run is."""
    return str(hashlib.sha256(run.name.encode()).digest()[0] % 2)


def as_yaml(table: ErrorTable) -> str:
    """Return the profile of *table*."""
    from ruamel.yaml import YAML

    yaml, stream = YAML(), io.StringIO()
    yaml.width = 120
    yaml.dump(table.model_dump(mode="json", exclude_defaults=True), stream)
    return stream.getvalue()
