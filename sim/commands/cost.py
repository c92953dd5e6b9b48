"""``sim cost EXP.yaml``."""

from __future__ import annotations

import argparse

from sim.commands.experiment import add_experiment, experiment_of
from sim.report import cost as report
from sim.study.money import money_of

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to *parser*."""
    add_experiment(parser, "the experiment, whose load is taken as the busiest hour of the day")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="form of the result")


def run(options: argparse.Namespace) -> int:
    """Simulate the experiment and say what it costs."""
    report.show(money_of(experiment_of(options)).as_dict(), options.format)
    return 0
