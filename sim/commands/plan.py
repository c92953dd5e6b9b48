"""``sim plan EXP.yaml``."""

from __future__ import annotations

import argparse

from sim.commands.experiment import add_experiment, experiment_of
from sim.errors import UserError
from sim.report import plan as report
from sim.study.plan import plan_of

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to *parser*."""
    add_experiment(parser, "the experiment; its parallelism and replicas are what is planned")
    parser.add_argument("--concurrency", type=int, metavar="N", help="requests at once at the peak (default: a run's)")
    parser.add_argument("--context", type=int, metavar="N", help="tokens of each (default: 95th percentile)")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="form of the result")


def run(options: argparse.Namespace) -> int:
    """Walk the five steps and print each."""
    for name in ("concurrency", "context"):
        if (value := getattr(options, name)) is not None and value < 1:
            raise UserError(f"--{name} {value}: at least 1 is needed")
    report.show(plan_of(experiment_of(options), options.concurrency, options.context).as_dict(), options.format)
    return 0
