"""``sim search EXP.yaml``."""

from __future__ import annotations

import argparse
import functools
import sys
from typing import Any

from sim.commands.experiment import add_experiment, experiment_of
from sim.commands.processes import process_count
from sim.report import search as report
from sim.report.files import writable_folder, write_files
from sim.report.json import to_json
from sim.study.cache import Cache, default_folder
from sim.study.counter import Counter
from sim.study.laboratory import Laboratory
from sim.study.search import answer_of
from sim.study.spread import spread_on
from sim.study.table import parquet_of, squared
from sim.study.workers import workers

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to *parser*."""
    add_experiment(parser, "its `search:` says what is asked; missing: the highest load within the SLO")
    parser.add_argument("--out", metavar="DIR", help="write result.json and points.parquet there")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="how the answer is printed")
    parser.add_argument("--workers", type=process_count, default=1, metavar="N", help="processes (default: 1)")
    parser.add_argument(
        "--no-cache", action="store_true", help="neither use nor keep runs; with them a search goes on where it was"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")


def run(options: argparse.Namespace) -> int:
    """Search and print the answer."""
    experiment = experiment_of(options)
    folder = writable_folder(options.out) if options.out is not None else None
    counter = Counter(None if options.quiet else sys.stderr)
    laboratory = Laboratory(Cache(None if options.no_cache else default_folder()))
    if options.workers == 1:
        laboratory.on_run = counter.run
        answer = answer_of(experiment, laboratory)
    else:
        pool = workers("local", options.workers, None)
        answer = answer_of(experiment, laboratory, functools.partial(spread_on, pool, counter.part))
    counter.end()
    values: dict[str, Any] = answer.as_dict()
    if folder is not None:
        rows = squared(answer.rows())
        write_files(folder, {"result.json": (to_json(values) + "\n").encode(), "points.parquet": parquet_of(rows)})
    report.show(values, options.format)
    return 0
