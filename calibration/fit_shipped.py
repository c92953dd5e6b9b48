"""The engine constants that come along, fitted anew: ``python -m calibration.fit_shipped CASES.csv -o FOLDER``.

One entry for each range of versions and accelerator that has runs, and one for all other accelerators: the median of
those, without factors on kernels, which do not carry over; but for an engine none of whose kernels were timed.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from calibration.anomalies import anomaly_of
from calibration.case_names import gpu_of, version_of
from calibration.fit import Outcome, fit_points, profile_yaml
from calibration.fitting.fitted import MOST_EVALUATIONS
from calibration.fitting.points import Point, points_of
from calibration.fitting.priors import FACTORS_DEVIATION, priors_for
from calibration.leave_out import Errors, errors_with, leave_one_model_out
from calibration.memory_cases import NotModelledError
from calibration.serving_cases import ServingCase, read_serving_cases
from sim.profiles.calibrated import Constant, Fit
from sim.profiles.calibrated_engine import EngineConstants
from sim.profiles.library import load_calibrated_engine
from sim.wholefile import write_whole

__all__ = ["RECIPES", "Recipe", "main"]

MOST_POINTS = 24
_FEWEST_POINTS = 6
_MOST_CONCURRENT = 64
"""Loads beyond are left to validation: they cost the most to simulate, and tell nothing new of an iteration."""


class Recipe(NamedTuple):
    """One entry: which runs, and whether host time adds to the GPU's or hides behind it.

    Attributes
    ----------
    case_id
        How their identifiers begin.
    only
        Column to the values that are fitted, where the others are to show what the constants are worth beside them.
    host_s
        What an iteration is thought to take the host before the runs are seen, where its profile's processor is not
        the one that ran; as uncertain as it is long.
    deviation
        How far from 1 the factors on kernels may be: wide where these are another engine's on another accelerator.
    users
        Most at once.
    load_types
        What its runs are: times of servers, or of batches where nothing else was published.
    """

    engine: str
    since: str
    before: str | None
    gpus: tuple[str, ...]
    overlapped: tuple[bool, ...]
    case_id: str = ""
    only: tuple[tuple[str, tuple[str, ...]], ...] = ()
    host_s: float | None = None
    deviation: float = FACTORS_DEVIATION
    users: int = _MOST_CONCURRENT
    load_types: tuple[str, ...] = ("concurrency", "rate")

    @property
    def name(self) -> str:
        """First version and accelerator."""
        return f"{self.since}:{self.gpus[0]}"

    @property
    def of_other_kernels(self) -> bool:
        """Its factors stand for kernels that nobody timed, and its host times for what these leave."""
        return self.deviation > FACTORS_DEVIATION


_OTHER_KERNELS = 0.5
_FAR_EVALUATIONS = 20
"""Of the residuals of runs on kernels that nobody timed, which start far from where they end."""
_HOST_OF_2024_S = 2.4e-3
"""What vLLM 0.5 took the host an iteration beside timed kernels: 1.9 ms on A100, 2.8 ms on H100."""
_SLOW_HOST_S = 10e-3
"""A token of DeepSeek-R1-Distill-Qwen-1.5B took 11.3 ms on the RTX 4090 that ran, its weights a third of that."""
_BATCHES = ("batch",)
_ONE_CARD = (("tp", ("1",)),)

RECIPES = (
    Recipe("vllm", "0.2", "0.6", ("A100-SXM-40GB",), (False,), load_types=_BATCHES),
    Recipe("vllm", "0.2", "0.6", ("H100-SXM-80GB",), (False,), load_types=_BATCHES),
    *(
        Recipe("vllm", "0.2", "0.6", (gpu,), (False,), "", (), _HOST_OF_2024_S, _OTHER_KERNELS, load_types=_BATCHES)
        for gpu in ("MI250", "MI300X", "Max-1550")
    ),
    Recipe("vllm", "0.8", "0.8.5", ("H100-PCIe-80GB",), (False,), "pub", _ONE_CARD),
    Recipe("vllm", "0.8.5", "0.14", ("H100-PCIe-80GB",), (False,), "pub", _ONE_CARD),
    Recipe("vllm", "0.8", "0.14", ("RTX-4090",), (True,), "pub", _ONE_CARD, _SLOW_HOST_S),
    Recipe("vllm", "0.8", "0.14", ("L40S",), (False,), "pub"),
    Recipe("vllm", "0.8", "0.14", ("H100-SXM-80GB",), (False,), "sil"),
    Recipe("vllm", "0.8", "0.14", ("H200-SXM-141GB",), (False,), "sil"),
    Recipe("vllm", "0.14", "0.18", ("H100-SXM-80GB",), (False,), "run"),
    Recipe("vllm", "0.18", "0.23", ("H100-SXM-80GB",), (True, False), "sil"),
    Recipe("vllm", "0.14", "0.23", ("H200-SXM-141GB",), (True, False), "sil"),
    Recipe("vllm", "0.14", "0.23", ("B200-SXM-180GB",), (True, False), "sil"),
    Recipe("vllm", "0.23", None, ("H100-SXM-80GB",), (False,), "run", (("load_value", ("2", "10")),)),
    Recipe("tensorrt-llm", "0.11", "1.0", ("H100-SXM-80GB",), (True,), "pub"),
    Recipe("tensorrt-llm", "1.0", None, ("H100-SXM-80GB",), (True,), "sil"),
    Recipe("tensorrt-llm", "1.0", None, ("H200-SXM-141GB",), (True,), "sil"),
    Recipe("tensorrt-llm", "1.0", None, ("B200-SXM-180GB",), (True,), "sil"),
    Recipe("sglang", "0.5", None, ("H100-SXM-80GB",), (True,), "sil"),
    Recipe("sglang", "0.5", None, ("H200-SXM-141GB",), (True,), "sil", users=512),
    Recipe("sglang", "0.5", None, ("B200-SXM-180GB",), (True,), "sil"),
    *(
        Recipe("llama-cpp", "0", None, (gpu,), (False,), deviation=_OTHER_KERNELS, load_types=_BATCHES)
        for gpu in (
            "RTX-4090",
            "RTX-3090",
            "RTX-A6000",
            "RTX-6000-Ada",
            "A100-SXM-40GB",
            "H100-SXM-80GB",
            "H100-PCIe-80GB",
            "MI300X",
            "MI250",
            "DGX-Spark",
            "Strix-Halo",
            "Apple-M2-Ultra",
        )
    ),
    Recipe("llama-cpp", "0", None, ("Max-1550",), (False,), "", _ONE_CARD, None, _OTHER_KERNELS, load_types=_BATCHES),
)


def chosen(case: ServingCase, recipe: Recipe) -> bool:
    """Tell whether *case* is one of the runs of *recipe*."""
    if case.text("load_type") not in recipe.load_types or case.text("quality") != "ok":
        return False
    if not case.text("load_value") or any(case.text(column) not in values for column, values in recipe.only):
        return False
    if not case.name.startswith(recipe.case_id) or case.text("mode") != "agg":
        return False
    if case.text("load_type") == "concurrency" and (case.number("load_value") or 0) > recipe.users:
        return False
    try:
        kind, version, _ = version_of(case, [])
        known = kind == recipe.engine and gpu_of(case) in recipe.gpus
    except NotModelledError:
        return False
    holds = _order(recipe.since) <= _order(version) < _end(recipe.before)
    return known and holds and anomaly_of(case) is None


def _order(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version))) or (998,)


def _end(before: str | None) -> tuple[int, ...]:
    return _order(before or "999")


def drawn(cases: Sequence[ServingCase], most: int = MOST_POINTS) -> list[ServingCase]:
    """Return *most* different cases, spread over models, ranks and loads by the hash of their names."""
    unlike = list({case.question: case for case in cases}.values())
    groups: dict[tuple[str, ...], list[ServingCase]] = defaultdict(list)
    for case in sorted(unlike, key=_hash):
        groups[case.text("model"), case.text("tp"), case.text("load_value")].append(case)
    in_turn = ((place, _hash(case), case) for found in groups.values() for place, case in enumerate(found))
    return [case for *_, case in sorted(in_turn, key=lambda turn: turn[:2])[:most]]


def _hash(case: ServingCase) -> str:
    return hashlib.sha256(case.name.encode()).hexdigest()


def fit_recipe(recipe: Recipe, cases: Sequence[ServingCase], source: str) -> Outcome | None:
    """Return the fit of *recipe*; None with too few runs."""
    points: list[Point] = points_of(drawn([case for case in cases if chosen(case, recipe)]))[0]
    if len(points) < _FEWEST_POINTS:
        return None
    priors = priors_for(points[0].setup.version, recipe.deviation, recipe.host_s)
    evaluations = _FAR_EVALUATIONS if recipe.of_other_kernels else MOST_EVALUATIONS
    return fit_points(recipe.engine, points, source, recipe.overlapped, priors=priors, most_evaluations=evaluations)


def entry(recipe: Recipe, outcome: Outcome) -> EngineConstants:
    """Return the fit as an entry of a profile; what the runs do not tell is marked as fixed."""
    found = outcome.published
    constants = {
        name: constant.model_copy(update={"status": "fixed"}) if name in outcome.fitted.unknown else constant
        for name, constant in found.constants.items()
    }
    where = {"since": recipe.since, "before": recipe.before, "gpus": recipe.gpus}
    return found.model_copy(update={"constants": constants, **where})


def for_all(entries: Sequence[EngineConstants], *, factors: bool = False) -> Iterator[EngineConstants]:
    """Yield an entry without accelerators for each range of versions: medians of those that hold in it.

    Factors on kernels only where an engine was fitted with *factors* far from 1.
    """
    starts = sorted({each.since for each in entries}, key=_order)
    for since, before in zip(starts, [*starts[1:], None], strict=True):
        found = [each for each in entries if _order(each.since) <= _order(since) < _end(each.before)]
        ends = [each.before for each in found if each.before is not None]
        before = min((before, *ends), key=_end) if ends else before
        constants = {}
        for name in found[0].constants:
            if name.endswith("_factor") and not factors:
                continue
            values = [each.constants[name].value for each in found if name in each.constants]
            bounds, spread = found[0].constants[name].bounds, (max(values) - min(values)) / 2
            value = float(f"{median(values):.4g}")
            constants[name] = Constant(value=value, stderr=float(f"{spread:.2g}"), bounds=bounds, status="fixed")
        yield EngineConstants(
            since=since,
            before=before,
            overlapped=sum(bool(each.overlapped) for each in found) * 2 > len(found),
            constants=constants,
            fit=Fit(source=f"medians over {', '.join(gpu for each in found for gpu in each.gpus)}"),
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit all recipes, print what came of them and of leaving out, and write one profile an engine."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cases", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--engine", action="append", help="only these")
    parser.add_argument("--entry", action="append", metavar="SINCE:GPU", help="only these, and keep the shipped others")
    options = parser.parse_args(arguments)
    cases = list(read_serving_cases(options.cases, None, {}))
    digest = hashlib.sha256(options.cases.read_bytes()).hexdigest()[:12]
    source = f"serving runs of {options.cases.name} (sha256 {digest}); each row there names its publication"
    for engine, recipes in _by_engine(options.engine).items():
        anew = [recipe for recipe in recipes if options.entry is None or recipe.name in options.entry]
        found = [(recipe, outcome) for recipe in anew if (outcome := fit_recipe(recipe, cases, source)) is not None]
        fitted = {recipe.name: entry(recipe, outcome) for recipe, outcome in found}
        shipped = {} if options.entry is None else _shipped(engine)
        entries = [(shipped | fitted)[recipe.name] for recipe in recipes if recipe.name in shipped | fitted]
        profile = profile_yaml(engine, [*entries, *_for_others(recipes, shipped | fitted)], source)
        write_whole(options.output / f"{engine}.yaml", profile.encode())
        for line in _report(found):
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
    return 0


def _shipped(engine: str) -> dict[str, EngineConstants]:
    """Return the entries that come along, by the names of their recipes."""
    return {f"{each.since}:{each.gpus[0]}": each for each in load_calibrated_engine(engine).entries if each.gpus}


def _for_others(recipes: Sequence[Recipe], entries: Mapping[str, EngineConstants]) -> list[EngineConstants]:
    """Return what holds for accelerators without runs: host times beside kernels that were timed, where any were."""
    factors = all(recipe.of_other_kernels for recipe in recipes)
    shared = [recipe.name for recipe in recipes if factors or not recipe.of_other_kernels]
    return list(for_all([entries[name] for name in shared if name in entries], factors=factors))


def _by_engine(chosen_engines: Sequence[str] | None) -> dict[str, list[Recipe]]:
    recipes: dict[str, list[Recipe]] = defaultdict(list)
    for recipe in RECIPES:
        if not chosen_engines or recipe.engine in chosen_engines:
            recipes[recipe.engine].append(recipe)
    return recipes


def _report(found: Sequence[tuple[Recipe, Outcome]]) -> Iterator[str]:
    """Yield the report of each fit, the errors of each model by the others, and of each accelerator by the others."""
    from calibration import report

    for recipe, outcome in found:
        yield f"\n## {recipe.engine} {recipe.since} to {recipe.before or 'now'} on {', '.join(recipe.gpus)}\n"
        yield report.fit(outcome)
        for model, errors in leave_one_model_out(outcome.fitted):
            yield f"left out {model}: {_shown(errors)}"
    for recipe, outcome in found:
        others = {each.name: entry(each, fit) for each, fit in found if each.gpus != recipe.gpus}
        for_others = _for_others([each for each, _ in found], others) if others else []
        holding = [each for each in for_others if _order(each.since) <= _order(recipe.since)]
        if holding:
            errors = errors_with(outcome.fitted.problem.points, holding[-1])
            yield f"{recipe.since} on {', '.join(recipe.gpus)} by the other accelerators: {_shown(errors)}"


def _shown(errors: Errors) -> str:
    return "; ".join(
        f"{metric} {found['mape']:.1f} / {found['medape']:.1f}, {found['bias']:+.0f} ({found['n']:.0f})"
        for metric, found in errors.items()
    )


if __name__ == "__main__":
    sys.exit(main())
