"""``sim sweep EXP.yaml``."""

from __future__ import annotations

import argparse
import sys
from typing import get_args

from sim.commands.experiment import add_experiment, experiment_of
from sim.commands.processes import process_count
from sim.report import sweep as report
from sim.report.files import writable_folder
from sim.study.cache import Cache, default_folder
from sim.study.folder import SweepFolder
from sim.study.progress import Progress
from sim.study.sweep import run_sweep
from sim.study.workers import Backend, workers

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to *parser*."""
    add_experiment(parser, "its `sweep:` says which points")
    parser.add_argument("--out", metavar="DIR", required=True, help="write sweep.parquet there")
    parser.add_argument("--resume", action="store_true", help="keep the points that DIR has already")
    parser.add_argument("--backend", choices=get_args(Backend), default="local", help="where the points are computed")
    parser.add_argument("--address", help="of a running Dask or Ray cluster (default: one on this machine)")
    parser.add_argument("--workers", type=process_count, metavar="N", help="processes (default: one a core)")
    parser.add_argument("--no-cache", action="store_true", help="neither use nor keep results of equal runs")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="how the rows are printed")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")


def run(options: argparse.Namespace) -> int:
    """Run the sweep and print its rows."""
    base = experiment_of(options)
    folder = SweepFolder(writable_folder(options.out))
    if not options.resume:
        folder.clear()
    pool = workers(options.backend, options.workers, options.address)
    cache = Cache(None if options.no_cache else default_folder())
    progress = (lambda row, left: None) if options.quiet else Progress(sys.stderr)
    report.show(run_sweep(base, folder, pool, cache, progress), folder.table, options.format)
    return 0
