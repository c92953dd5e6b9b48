"""``sim compare A B [...]``."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from sim.errors import UserError
from sim.experiment import load_experiment
from sim.paths import is_folder
from sim.report import compare as report
from sim.study.compare import Side, compare, play_seeds
from sim.study.played import from_folder

__all__ = ["add_arguments", "run"]


_SECOND_FIELD = re.compile(r"[\w.]+=[^\[{,]*,\s*[\w.]+=")  # a.b=c, d.e=f


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to *parser*."""
    parser.add_argument(
        "sides", nargs="+", metavar="A", help="experiments, or folders of `run --out`; one is enough with --vary"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="a.b=c", help="override a field of all experiments; repeatable"
    )
    parser.add_argument(
        "--vary",
        action="append",
        default=[],
        metavar="[NAME:]a.b=c[;d.e=f]",
        help="compare the first experiment with itself with these fields changed, as in"
        " --vary 'tp4: deployment.parallelism.tp=4; deployment.replicas=1'; repeatable, each a side of its own",
    )
    parser.add_argument("--replications", type=int, default=3, metavar="N", help="runs of each experiment (default: 3)")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="form of the result")


def run(options: argparse.Namespace) -> int:
    """Play what is no folder, compare, and report."""
    if len(options.sides) + len(options.vary) < 2:
        raise UserError("give at least two experiments or folders, or one experiment and --vary a.b=c")
    if options.replications < 1:
        raise UserError(f"--replications {options.replications}: at least 1 run is needed")
    if options.vary and is_folder(Path(options.sides[0])):
        raise UserError("--vary changes an experiment: name its file first, not a folder")
    sides = [_side(path, options) for path in options.sides]
    sides += [_varied(options.sides[0], variation, options) for variation in options.vary]
    report.show(compare(_distinct(sides)).as_dict(), options.format)
    return 0


def _side(path: str, options: argparse.Namespace) -> Side:
    if is_folder(Path(path)):
        name, played = from_folder(Path(path))
        return Side(name, [played])
    alone = any(is_folder(Path(other)) for other in options.sides)
    return _played(path, options.set, "", 1 if alone else options.replications)


def _varied(path: str, variation: str, options: argparse.Namespace) -> Side:
    """Play the experiment at *path* with a *variation*: ``name: a.b=c; d.e=f``, the name optional."""
    head, colon, rest = variation.partition(":")
    named = bool(colon) and "=" not in head
    assignments = [part.strip() for part in (rest if named else variation).split(";")]
    for assignment in assignments:
        if _SECOND_FIELD.match(assignment):
            raise UserError(f"--vary {assignment}: put ; between fields, not a comma")
    name = head.strip() if named else variation
    return _played(path, [*options.set, *assignments], name, options.replications)


def _played(path: str, overrides: list[str], name: str, replications: int) -> Side:
    experiment = load_experiment(path, overrides)
    seeds = range(experiment.seed, experiment.seed + replications)
    return play_seeds(name or experiment.name, experiment, seeds)


def _distinct(sides: list[Side]) -> list[Side]:
    """Give a number to sides that have the name of an earlier one."""
    seen: dict[str, int] = {}
    found = []
    for side in sides:
        count = seen[side.name] = seen.get(side.name, 0) + 1
        found.append(side if count == 1 else Side(f"{side.name} ({count})", side.runs))
    return found
