"""How the constants that come along carry over to accelerators: ``python -m calibration.carry_over CASES.csv``.

Each entry's runs are predicted with what the entries of the other accelerators give those without runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from calibration.cases.serving import ServingCase, read_serving_cases
from calibration.fit_shipped import for_others, shipped_entries, shown
from calibration.fitting.leave_out import errors_with
from calibration.fitting.points import points_of
from calibration.fitting.recipes import Recipe, by_engine, chosen, drawn
from sim.commandline import guarded
from sim.profiles.calibrated_engine import EngineConstants
from sim.profiles.library import load_calibrated_engine, load_hardware

__all__ = ["main"]


def _by_the_others(recipe: Recipe, recipes: Sequence[Recipe]) -> EngineConstants | None:
    """Return the constants for the accelerator of *recipe* as if it had no runs; None where no other's hold."""
    entries = shipped_entries(recipe.engine)
    others = {each.name: entries[each.name] for each in recipes if each.gpus != recipe.gpus and each.name in entries}
    found = for_others([each for each in recipes if each.name in others], others) if others else []
    calibration = load_calibrated_engine(recipe.engine).model_copy(update={"entries": tuple(found)})
    return calibration.of(recipe.since, load_hardware(recipe.gpus[0]))


def _lines(recipes: Sequence[Recipe], cases: Sequence[ServingCase]) -> Iterator[str]:
    for recipe in recipes:
        constants = _by_the_others(recipe, recipes)
        if constants is not None:
            points = points_of(drawn([case for case in cases if chosen(case, recipe)]))[0]
            errors = shown(errors_with(points, constants))
            yield f"{recipe.engine} {recipe.since} on {', '.join(recipe.gpus)}: {errors}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the errors on the runs of each accelerator by the constants of the others."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cases", type=Path)
    parser.add_argument("--engine", action="append", help="only these")
    options = parser.parse_args(arguments)
    return guarded(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    engines, cases = by_engine(options.engine), list(read_serving_cases(options.cases))
    for recipes in engines.values():
        for line in _lines(recipes, cases):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
