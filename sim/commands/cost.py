"""``sim cost EXP.yaml``."""

from __future__ import annotations

import argparse
import sys

from sim.commands.experiment import add_experiment, experiment_of
from sim.errors import InfeasibleError
from sim.report import cost as report
from sim.search.cheapest import Cheapest
from sim.study.money import money_of

__all__ = ["add_arguments", "run"]

_REPORT = "python -m sim report"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to *parser*."""
    add_experiment(parser, "the experiment, whose load is taken as the busiest hour of the day")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="form of the result")


def run(options: argparse.Namespace) -> int:
    """Simulate the experiment and say what it costs."""
    experiment = experiment_of(options)
    searched = isinstance(experiment.search, Cheapest)
    try:
        money = money_of(experiment)
    except InfeasibleError as problem:
        nearest = (*problem.nearest, f"what `search:` finds, with `{_REPORT}`") if searched else problem.nearest
        raise InfeasibleError(problem.needs, problem.has, nearest) from None
    if searched:
        print(f"the deployment as it stands; `{_REPORT}` prices what `search:` finds", file=sys.stderr)
    report.show(money.as_dict(), options.format)
    return 0
