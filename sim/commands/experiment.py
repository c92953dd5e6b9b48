"""The experiment of a command, with what its options override."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.experiment import Experiment

__all__ = ["add_experiment", "experiment_of"]


def add_experiment(parser: argparse.ArgumentParser, about: str) -> None:
    """Add the experiment's file, which *about* describes, and the options that override fields of it to *parser*."""
    parser.add_argument("experiment", metavar="EXP.yaml", help=about)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="a.b=c",
        help="override a field, such as deployment.replicas=2; repeatable",
    )
    parser.add_argument("--seed", metavar="N", help="seed (default: the experiment's)")


def experiment_of(options: argparse.Namespace) -> Experiment:
    """Return the experiment that *options* name; raise `ConfigError` for one that cannot be used."""
    from sim.experiment import load_experiment  # takes long, and help needs none

    seed = [] if options.seed is None else [f"seed={options.seed}"]
    return load_experiment(options.experiment, [*options.set, *seed])
