"""One run of an experiment, as ``sim run`` has it."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sim.commands.experiment import experiment_of
from sim.errors import UserError
from sim.report import run as report
from sim.report.files import writable_folder
from sim.report.table import WIDTH
from sim.simulate import Result, simulate

__all__ = ["run_once"]


def run_once(options: argparse.Namespace) -> int:
    """Simulate the experiment and report."""
    experiment = experiment_of(options)
    folder = writable_folder(options.out) if options.out is not None else None
    if options.workers and not options.draws:
        raise UserError("they compute draws, and there are none: --draws N", file="--workers")
    with _progress(options.quiet, "requests") as on_progress:
        result = simulate(experiment, on_progress)
    if options.draws:
        result = _with_draws(result, options)
    if not options.quiet:
        print(report.defaults_text(result, _width()), file=sys.stderr)
        if experiment.sweep is not None:
            print("note: this is one run; its `sweep:` is for `python -m sim sweep`", file=sys.stderr)
    if folder is not None:
        report.write(result, folder)
    report.show(result, options.format)
    return 0


def _width() -> int:
    """Return the columns of text of what stderr is: no more than a terminal has."""
    return min(WIDTH, shutil.get_terminal_size().columns) if sys.stderr.isatty() else WIDTH


def _with_draws(result: Result, options: argparse.Namespace) -> Result:
    from sim.study.draws import with_draws

    with _progress(options.quiet, "draws") as on_draw:
        return with_draws(result, options.draws, options.workers, on_draw)


@contextmanager
def _progress(quiet: bool, what: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show a bar on a terminal's stderr, and nothing elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
