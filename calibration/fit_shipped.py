"""The engine constants that come along, fitted anew: ``python -m calibration.fit_shipped CASES.csv -o FOLDER``.

One entry for each range of versions and accelerator that has runs, and one for all other accelerators: the median of
those, without factors on kernels, which do not carry over; but for an engine none of whose kernels were timed.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from calibration.cases.of_files import steps_of
from calibration.cases.serving import ServingCase, read_serving_cases
from calibration.fitting.fit import fit_points
from calibration.fitting.fitted import MOST_EVALUATIONS
from calibration.fitting.leave_out import Errors, leave_one_model_out
from calibration.fitting.outcome import Outcome, profile_yaml
from calibration.fitting.points import Measured, points_of
from calibration.fitting.priors import priors_for
from calibration.fitting.recipes import Recipe, by_engine, chosen, drawn
from calibration.fitting.step_points import StepPoint, step_points
from sim.commandline import guarded
from sim.errors import UserError
from sim.profiles.calibrated import Constant, Fit
from sim.profiles.calibrated_engine import EngineConstants, holds, numbers
from sim.profiles.library import load_calibrated_engine
from sim.wholefile import write_whole

__all__ = ["for_all", "for_others", "main", "shipped_entries", "shown"]

_FEWEST_POINTS = 6
_FAR_EVALUATIONS = 20
"""Of the residuals of runs on kernels that nobody timed, which start far from where they end."""


def fit_recipe(
    recipe: Recipe, cases: Sequence[ServingCase], source: str, steps: Path | None = None
) -> Outcome | None:
    """Return the fit of *recipe*, beside iterations in the file *steps* where it is traced; None with too few runs."""
    runs = points_of(drawn([case for case in cases if chosen(case, recipe)], recipe.runs))[0]
    if len(runs) < _FEWEST_POINTS:
        return None
    points: list[Measured] = [*runs, *_iterations(recipe, steps)]
    if recipe.traced and steps is not None:
        source += f"; iterations of {steps.name}"
    thought = priors_for(points[0].setup.version, recipe.deviation, recipe.host_s)
    priors = tuple(prior for prior in thought if prior.name not in recipe.held)
    evaluations = _FAR_EVALUATIONS if recipe.of_other_kernels else MOST_EVALUATIONS
    shipped = shipped_entries(recipe.engine).get(recipe.name)
    return fit_points(
        recipe.engine,
        points,
        source,
        recipe.overlapped,
        priors=priors,
        most_evaluations=evaluations,
        shipped=shipped,
        near=None if recipe.of_other_kernels else shipped,
    )


def _iterations(recipe: Recipe, steps: Path | None) -> Iterator[StepPoint]:
    """Yield the iterations that *recipe* is fitted to; raise `UserError` where they are not given."""
    if not recipe.traced:
        return
    if steps is None:
        raise UserError(f"{recipe.engine} {recipe.name} is fitted to iterations, too: give a trace of {recipe.traced}")
    for case, trace in steps_of(steps, {}, {"engine": recipe.engine, "engine_version": recipe.traced}):
        yield from step_points(case, trace)


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
    starts = sorted({each.since for each in entries}, key=numbers)
    for since, before in zip(starts, [*starts[1:], None], strict=True):
        found = [each for each in entries if holds(each.since, each.before, since)]
        before = min((before, *(each.before for each in found)), key=numbers)
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
    parser.add_argument("--steps", type=Path, help="iterations, for the entries that are fitted to some")
    parser.add_argument("--engine", action="append", help="only these")
    parser.add_argument("--entry", action="append", metavar="SINCE:GPU", help="only these, and keep the shipped others")
    options = parser.parse_args(arguments)
    return guarded(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    options.output.mkdir(parents=True, exist_ok=True)
    cases = list(read_serving_cases(options.cases))
    digest = hashlib.sha256(options.cases.read_bytes()).hexdigest()[:12]
    source = f"serving runs of {options.cases.name} (sha256 {digest}); each row there names its publication"
    for engine, recipes in by_engine(options.engine).items():
        anew = [recipe for recipe in recipes if options.entry is None or recipe.name in options.entry]
        fits = ((recipe, fit_recipe(recipe, cases, source, options.steps)) for recipe in anew)
        found = [(recipe, outcome) for recipe, outcome in fits if outcome is not None]
        fitted = {recipe.name: entry(recipe, outcome) for recipe, outcome in found}
        shipped = {} if options.entry is None else shipped_entries(engine)
        entries = [(shipped | fitted)[recipe.name] for recipe in recipes if recipe.name in shipped | fitted]
        profile = profile_yaml(engine, [*entries, *for_others(recipes, shipped | fitted)], source)
        write_whole(options.output / f"{engine}.yaml", profile.encode())
        for line in _report(found):
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
    return 0


def shipped_entries(engine: str) -> dict[str, EngineConstants]:
    """Return the entries that come along, by the names of their recipes."""
    return {f"{each.since}:{each.gpus[0]}": each for each in load_calibrated_engine(engine).entries if each.gpus}


def for_others(recipes: Sequence[Recipe], entries: Mapping[str, EngineConstants]) -> list[EngineConstants]:
    """Return what holds for accelerators without runs: host times beside kernels that were timed, where any were."""
    factors = all(recipe.of_other_kernels for recipe in recipes)
    shared = [recipe.name for recipe in recipes if (factors or not recipe.of_other_kernels) and not recipe.alone]
    return list(for_all([entries[name] for name in shared if name in entries], factors=factors))


def _report(found: Sequence[tuple[Recipe, Outcome]]) -> Iterator[str]:
    """Yield the report of each fit, and the errors of each model by the others."""
    from calibration import report

    for recipe, outcome in found:
        yield f"\n## {recipe.engine} {recipe.since} to {recipe.before or 'now'} on {', '.join(recipe.gpus)}\n"
        yield report.fit(outcome)
        for model, errors in leave_one_model_out(outcome.fitted):
            yield f"left out {model}: {shown(errors)}"


def shown(errors: Errors) -> str:
    """Return errors as text: mean / median of the absolute value, bias, and how many."""
    return "; ".join(
        f"{metric} {found['mape']:.1f} / {found['medape']:.1f}, {found['bias']:+.0f} ({found['n']:.0f})"
        for metric, found in errors.items()
    )


if __name__ == "__main__":
    sys.exit(main())
