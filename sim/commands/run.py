"""``sim run EXP.yaml``."""

from __future__ import annotations

import argparse

from sim.commands.experiment import add_experiment
from sim.commands.processes import count_of
from sim.garbage import modules_kept

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to *parser*."""
    add_experiment(parser, "the experiment")
    parser.add_argument("--out", metavar="DIR", help="write result, rows, timeline, Perfetto trace and manifest there")
    parser.add_argument(
        "--format",
        choices=("table", "vllm", "json"),
        default="table",
        help="form of the result; vllm: as `vllm bench serve` prints it",
    )
    parser.add_argument(
        "--draws",
        type=count_of("draws"),
        metavar="N",
        help="intervals from N draws of the calibrated constants, each on requests of its own: 2 N more simulations",
    )
    parser.add_argument("--workers", type=count_of("processes"), metavar="N", help="processes for draws (one a core)")
    parser.add_argument("--quiet", action="store_true", help="no progress and no defaults on stderr")


def run(options: argparse.Namespace) -> int:
    """Simulate the experiment and report."""
    with modules_kept():
        from sim.commands.one_run import run_once  # here, so that help is instant

    return run_once(options)
