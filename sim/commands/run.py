"""``sim run EXP.yaml``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sim.commands.experiment import add_experiment, experiment_of
from sim.report import run as report
from sim.report.files import writable_folder
from sim.simulate import simulate

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
    parser.add_argument("--quiet", action="store_true", help="no progress and no defaults on stderr")


def run(options: argparse.Namespace) -> int:
    """Simulate the experiment and report."""
    experiment = experiment_of(options)
    folder = writable_folder(options.out) if options.out is not None else None
    with _progress(options.quiet) as on_progress:
        result = simulate(experiment, on_progress)
    if not options.quiet:
        print(report.defaults_text(result), file=sys.stderr)
        if experiment.sweep is not None:
            print("note: this is one run; its `sweep:` is for `python -m sim sweep`", file=sys.stderr)
    if folder is not None:
        report.write(result, folder)
    report.show(result, options.format)
    return 0


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Show a bar on a terminal's stderr, and nothing elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("requests", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
